"""Saved views: the filters of a list under a name, for one person or shared."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("subscriptions", "0019_developers"),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("list_name", models.CharField(max_length=100)),
                ("name", models.CharField(max_length=80)),
                ("query", models.CharField(max_length=2000)),
                ("is_shared", models.BooleanField(default=False)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_views",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["name", "id"],
                "default_permissions": (),
                "indexes": [models.Index(fields=["list_name", "name"], name="saved_view_of_list")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "list_name", "name"), name="saved_view_has_its_name_once"
                    )
                ],
            },
        ),
    ]
