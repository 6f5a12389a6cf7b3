"""What the charts of the history read of everybody's hours: an index that has all of it."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('delivery', '0014_roles_of_history'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='historyhour',
            options={'ordering': ['hour', 'subscription_id'], 'verbose_name_plural': 'history'},
        ),
        migrations.AddIndex(
            model_name='historyhour',
            index=models.Index(fields=['hour'], include=('subscription_id', 'subscriber', 'event_type', 'delivered', 'rejected', 'unsupported', 'failed', 'expired', 'attempts', 'retried', 'bytes', 'blocked_seconds', 'latency_p50', 'latency_p95', 'latency_p99', 'response_p50', 'response_p95', 'response_p99'), name='history_hour_read'),
        ),
    ]
