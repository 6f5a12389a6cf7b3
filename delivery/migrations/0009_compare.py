"""The step COMPARE of the pipeline: deliveries against another broker's log."""

from django.db import migrations, models

STEPS = [
    ("EXPORT", "export"),
    ("ROLLUP", "rollup"),
    ("VERIFY", "verify"),
    ("REPLAY", "replay"),
    ("REPORT", "report"),
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
