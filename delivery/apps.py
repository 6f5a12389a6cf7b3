"""What was published, and what became of it."""

from django.apps import AppConfig


class DeliveryConfig(AppConfig):
    name = "delivery"

    def ready(self) -> None:
        from delivery.lifecycle import change_signals, lane_signals  # noqa: F401 - connect themselves
