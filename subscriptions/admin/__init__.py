"""The console's pages for configuration; subscribers and subscriptions are registered by `delivery.admin`."""

from subscriptions.admin import api_key, change, event_type, policy, publisher, role, sign_in, user

__all__ = ["api_key", "change", "event_type", "policy", "publisher", "role", "sign_in", "user"]
