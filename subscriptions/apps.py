"""Who publishes, who listens, and to what."""

from django.apps import AppConfig


class SubscriptionsConfig(AppConfig):
    name = "subscriptions"
    verbose_name = "Configuration"
