"""The status codes that count as success, in a policy."""

from django.db import migrations, models

import subscriptions.values.number_lists


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0010_scripts")]

    operations = [
        migrations.AddField(
            "policy",
            "success_codes",
            models.CharField(
                default="2xx",
                help_text="Answers that count as success: 2xx, or status codes separated by commas, such as 200,201. "
                "Any other 2xx then counts as a 5xx.",
                max_length=100,
                validators=[subscriptions.values.number_lists.check_success_codes],
            ),
        ),
    ]
