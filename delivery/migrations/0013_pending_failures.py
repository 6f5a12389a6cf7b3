"""Renames the model FailureSign; its table keeps the name, for the version that runs meanwhile."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("delivery", "0012_standing_views")]

    operations = [
        migrations.AlterModelTable("FailureSign", "delivery_failuresign"),
        migrations.RenameModel("FailureSign", "PendingFailure"),
    ]
