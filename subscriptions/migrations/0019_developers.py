"""Developers of publishers, and read keys that are limited to a publisher or a subscriber."""

from django.conf import settings
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [
        ("subscriptions", "0018_default_destinations"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            "publisher",
            "developers",
            models.ManyToManyField(
                blank=True,
                help_text="People with the role Developers who see its messages and deliveries.",
                related_name="publishers",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RemoveConstraint("apikey", "api_key_owner_fits_scope"),
        migrations.AddConstraint(
            "apikey",
            models.CheckConstraint(
                condition=(
                    Q(scope="publish", publisher__isnull=False, subscriber=None)
                    | Q(scope="fetch", publisher=None, subscriber__isnull=False)
                    | Q(scope="read", publisher=None)
                    | Q(scope="read", subscriber=None)
                    | Q(scope="manage", publisher=None, subscriber=None)
                ),
                name="api_key_owner_fits_scope",
            ),
        ),
    ]
