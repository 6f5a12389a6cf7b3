"""The URLs of chats are stored encrypted: whoever knows one can post there.

There is no reverse: older versions would store them in clear, and keys of alerts lead nowhere back.
"""

from django.db import migrations, models

import subscriptions.values.encryption
from subscriptions.values.encryption import encrypt
from subscriptions.values.shown_addresses import secret_address_key


def encrypt_urls(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT kind, chat_urls FROM delivery_incidentrule")
        rules = [(encrypt(urls), kind) for kind, urls in cursor.fetchall()]
        cursor.execute("ALTER TABLE delivery_incidentrule ALTER chat_urls TYPE text USING ''")
        update = "UPDATE delivery_incidentrule SET chat_urls = %s WHERE kind = %s"
        cursor.executemany(update, rules)
        cursor.execute("SELECT id, recipient FROM delivery_incidentalert WHERE channel = 'CHAT'")
        alerts = [(encrypt(url), secret_address_key(url), pk) for pk, url in cursor.fetchall()]
        update = "UPDATE delivery_incidentalert SET url = %s, recipient = %s WHERE id = %s"
        cursor.executemany(update, alerts)


class Migration(migrations.Migration):
    dependencies = [
        ("delivery", "0008_new_endpoints_are_not_down"),
        ("subscriptions", "0008_masked_url"),
    ]

    operations = [
        migrations.AddField(
            "incidentalert",
            "url",
            subscriptions.values.encryption.EncryptedJSONField(
                blank=True, default=None, editable=False, null=True
            ),
        ),
        migrations.AlterField(
            "incidentalert",
            "recipient",
            models.CharField(
                help_text="The mail address; for a chat the key of its URL.", max_length=2000
            ),
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(encrypt_urls)],
            state_operations=[
                migrations.AlterField(
                    "incidentrule",
                    "chat_urls",
                    subscriptions.values.encryption.EncryptedJSONField(
                        blank=True, default=list, verbose_name="chat webhooks"
                    ),
                )
            ],
        ),
    ]
