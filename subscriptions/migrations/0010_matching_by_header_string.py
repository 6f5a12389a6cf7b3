from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("subscriptions", "0009_backlog_cancellations"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="subscription",
            name="subscription_matching",
        ),
        migrations.AddIndex(
            model_name="subscription",
            index=models.Index(condition=models.Q(("status", "ACTIVE")), fields=["event_type", "header_filter_string"], name="subscription_matching"),
        ),
    ]
