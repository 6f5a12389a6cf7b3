"""Which job cancels the backlog of a subscription that was made ACTIVE; nothing of it is sent before that has ended."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0008_changes_by_transaction")]

    operations = [
        migrations.AddField(
            model_name="subscription",
            name="cancellation_id",
            field=models.BigIntegerField(
                editable=False,
                help_text="The cancellation of its backlog that is under way: nothing is sent until that has ended.",
                null=True,
            ),
        ),
    ]
