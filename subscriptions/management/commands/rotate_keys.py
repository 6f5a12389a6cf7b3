"""`rotate_keys`: encrypt every secret again with the first of INTURN_ENCRYPTION_KEYS."""

from typing import Any

from django.core.management.base import BaseCommand
from django.db import transaction

from subscriptions.models import SigningSecret, Subscriber, Subscription


class Command(BaseCommand):
    help = (
        "Encrypt all secrets with the first of INTURN_ENCRYPTION_KEYS; "
        "then the others can be removed."
    )

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        # Only these columns: nothing else has changed, so `updated_at` stays.
        for subscription in Subscription.objects.select_for_update(no_key=True):
            subscription.save(update_fields=["headers", "auth"])
        subscribers = Subscriber.objects.filter(headers__isnull=False)
        for subscriber in subscribers.select_for_update(no_key=True):
            subscriber.save(update_fields=["headers"])
        for secret in SigningSecret.objects.select_for_update(no_key=True):
            secret.save(update_fields=["secret"])
        self.stdout.write(
            f"{Subscription.objects.count()} subscriptions and {SigningSecret.objects.count()} "
            "secrets are encrypted with the first key."
        )
