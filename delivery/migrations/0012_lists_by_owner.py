"""What lists need: the deliveries of a subscription and the messages of a publisher, in place of the indexes of their foreign keys."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('delivery', '0011_journal_of_test_messages'),
        ('subscriptions', '0006_roles_and_sign_ins'),
    ]

    operations = [
        migrations.AlterField(
            model_name='delivery',
            name='subscription',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='subscriptions.subscription'),
        ),
        migrations.AlterField(
            model_name='message',
            name='event_type',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='subscriptions.eventtype'),
        ),
        migrations.AlterField(
            model_name='message',
            name='publisher',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='subscriptions.publisher'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['subscription'], include=('id', 'status'), name='delivery_of_subscription'),
        ),
        migrations.AddIndex(
            model_name='message',
            index=models.Index(fields=['publisher', '-id'], name='message_by_publisher'),
        ),
    ]
