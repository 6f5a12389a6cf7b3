"""Bulk jobs that cancel, too; messages by the status of what failed."""

from django.db import migrations, models
from django.db.models import F, Q

_NOT_DELIVERED = ["REJECTED", "3xxNOTSUPPORTED", "FAILED", "IN_DOUBT", "EXPIRED", "CANCELLED", "DUPLICATE"]


class Migration(migrations.Migration):
    dependencies = [("delivery", "0007_traffic")]

    operations = [
        migrations.AlterModelOptions(
            name="resubmission",
            options={
                "ordering": ["-id"],
                "verbose_name": "resubmission",
                "verbose_name_plural": "resubmissions and cancellations",
            },
        ),
        migrations.AddField(
            model_name="resubmission",
            name="verb",
            field=models.CharField(
                choices=[("RESUBMIT", "resubmit"), ("CANCEL", "cancel")],
                db_default="RESUBMIT",
                default="RESUBMIT",
                max_length=8,
            ),
        ),
        migrations.RemoveConstraint(model_name="resubmission", name="resubmission_counts"),
        migrations.RenameField(model_name="resubmission", old_name="resubmitted", new_name="changed"),
        migrations.AddConstraint(
            model_name="resubmission",
            constraint=models.CheckConstraint(
                name="resubmission_counts", condition=Q(changed__lte=F("done"))
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                fields=["status", "-message"],
                name="delivery_failed_of_message",
                condition=Q(status__in=_NOT_DELIVERED),
            ),
        ),
    ]
