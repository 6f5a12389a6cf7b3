"""`rotate_keys`: encrypt every secret again with the first of INTURN_ENCRYPTION_KEYS."""

from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand
from django.db import transaction
from django.db.models import Model, Q

from subscriptions.models import SigningSecret, Subscription
from subscriptions.values.encryption import EncryptedJSONField


class Command(BaseCommand):
    help = (
        "Encrypt all secrets with the first of INTURN_ENCRYPTION_KEYS; "
        "then the others can be removed."
    )

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        for model in apps.get_models():
            if not model._meta.proxy:
                _encrypt_again(model)
        self.stdout.write(
            f"{Subscription.objects.count()} subscriptions and {SigningSecret.objects.count()} "
            "secrets are encrypted with the first key."
        )


def _encrypt_again(model: type[Model]) -> None:
    fields = model._meta.concrete_fields
    names = [field.name for field in fields if isinstance(field, EncryptedJSONField)]
    if not names:
        return
    has_any = Q(*((f"{name}__isnull", False) for name in names), _connector=Q.OR)
    rows = model._base_manager.filter(has_any).order_by("pk")
    for row in rows.select_for_update(no_key=True):
        # Only these columns: nothing else has changed, so `updated_at` stays.
        row.save(update_fields=names)
