"""What was published, and what became of it."""

from django.apps import AppConfig
from django.db.models.signals import pre_migrate


class DeliveryConfig(AppConfig):
    name = "delivery"

    def ready(self) -> None:
        from delivery.database.versions import refuse_another_version
        from delivery.lifecycle import change_signals, lane_signals  # noqa: F401 - connect themselves

        pre_migrate.connect(refuse_another_version, sender=self)
