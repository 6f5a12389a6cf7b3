"""Published messages and their deliveries."""

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import pre_migrate


class DeliveryConfig(AppConfig):
    name = "delivery"

    def ready(self) -> None:
        from delivery.database.connections import make_session
        from delivery.database.versions import refuse_another_version
        from delivery.lifecycle import signals  # noqa: F401 - they connect themselves

        connection_created.connect(make_session)
        pre_migrate.connect(refuse_another_version, sender=self)
