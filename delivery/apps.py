"""Published messages and their deliveries."""

from django.apps import AppConfig
from django.db.models.signals import pre_migrate


class DeliveryConfig(AppConfig):
    name = "delivery"

    def ready(self) -> None:
        from delivery.database.versions import refuse_another_version
        from delivery.lifecycle import signals  # noqa: F401 - they connect themselves

        pre_migrate.connect(refuse_another_version, sender=self)
