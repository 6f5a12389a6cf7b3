"""The steps EFFECT (a plan on the archive) and COMPARE (with another broker's log) of the pipeline."""

from django.db import migrations, models

STEPS = [
    ("EXPORT", "export"),
    ("ROLLUP", "rollup"),
    ("VERIFY", "verify"),
    ("REPLAY", "replay"),
    ("REPORT", "report"),
    ("EFFECT", "effect"),
    ("COMPARE", "compare"),
]


class Migration(migrations.Migration):
    dependencies = [("delivery", "0008_script_outputs")]

    operations = [
        migrations.AlterField("pipelinerun", "step", models.CharField(choices=STEPS, max_length=7)),
        migrations.AlterField(
            "pipelineschedule",
            "step",
            models.CharField(choices=STEPS, max_length=7, primary_key=True, serialize=False),
        ),
    ]
