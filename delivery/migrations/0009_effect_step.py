"""A step that says what a planned configuration would have meant for the archive."""

from django.db import migrations, models

STEPS = [
    ("EXPORT", "export"),
    ("ROLLUP", "rollup"),
    ("VERIFY", "verify"),
    ("REPLAY", "replay"),
    ("REPORT", "report"),
    ("EFFECT", "effect"),
]


class Migration(migrations.Migration):
    dependencies = [("delivery", "0008_script_outputs")]

    operations = [
        migrations.AlterField("pipelinerun", "step", models.CharField(choices=STEPS, max_length=6)),
        migrations.AlterField(
            "pipelineschedule",
            "step",
            models.CharField(choices=STEPS, max_length=6, primary_key=True, serialize=False),
        ),
    ]
