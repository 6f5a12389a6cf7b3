"""A URL that never succeeded is known as such."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("delivery", "0006_shadow_or_redundant")]

    operations = [
        migrations.AddField("urlhealth", "first_success_at", models.DateTimeField(null=True)),
        # All but those of which every attempt failed may have succeeded before they were counted.
        migrations.RunSQL(
            "UPDATE delivery_urlhealth SET first_success_at = last_success_at"
            " WHERE NOT (attempts > 0 AND failures = attempts AND failures_in_row >= attempts)",
            migrations.RunSQL.noop,
        ),
    ]
