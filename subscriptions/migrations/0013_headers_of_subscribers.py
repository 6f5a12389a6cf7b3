"""Headers that are sent with each delivery of a subscriber; without any the column is null."""

from django.db import migrations

import subscriptions.values.encryption


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0012_standard_webhooks")]

    operations = [
        migrations.AddField(
            "subscriber",
            "headers",
            subscriptions.values.encryption.EncryptedJSONField(
                blank=True, default=None, editable=False, null=True
            ),
        ),
    ]
