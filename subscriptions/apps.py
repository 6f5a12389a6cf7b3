"""Event types, publishers, subscribers and subscriptions."""

from django.apps import AppConfig


class SubscriptionsConfig(AppConfig):
    name = "subscriptions"
    verbose_name = "Configuration"
