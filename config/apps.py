"""The Django app of the commands that run Inturn as a whole."""

from django.apps import AppConfig


class InturnConfig(AppConfig):
    name = "config"
    verbose_name = "Inturn"
