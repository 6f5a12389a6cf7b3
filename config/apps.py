"""The application that holds the commands which run Inturn as a whole."""

from django.apps import AppConfig


class InturnConfig(AppConfig):
    name = "config"
    verbose_name = "Inturn"

    def ready(self) -> None:
        from delivery.console import metrics

        metrics.register()
