"""The console: the admin site of Inturn in place of Django's own."""

from importlib import import_module

from django.apps import apps
from django.contrib.admin.apps import SimpleAdminConfig


class ConsoleConfig(SimpleAdminConfig):
    """Shows only what our own modules register.

    Other packages' admins are left out on purpose: django-q2's would let whoever may
    edit schedules run any Python function.
    """

    default_site = "delivery.console.site.ConsoleSite"

    def ready(self) -> None:
        super().ready()
        # What users and roles stand under; Django's own words are about how it is done.
        apps.get_app_config("auth").verbose_name = "People"
        import_module("subscriptions.admin")
        import_module("delivery.console.pages")
