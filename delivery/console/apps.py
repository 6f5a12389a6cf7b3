"""The console: the admin site of Inturn in place of Django's own."""

from importlib import import_module

import django_stubs_ext
from django.apps import apps
from django.contrib.admin.apps import SimpleAdminConfig

# Makes Django's classes for forms, views and lists generic. Here and not in the settings, because
# it imports all of them and Django's admin, which a cluster does not need; before the modules that
# use it, because Django imports all apps before any models.
django_stubs_ext.monkeypatch()


class ConsoleConfig(SimpleAdminConfig):
    """Register only the admins of our own modules.

    Other packages' admins are left out on purpose: django-q2's would let anyone who may edit
    schedules run any Python function.
    """

    default_site = "delivery.console.site.ConsoleSite"

    def ready(self) -> None:
        super().ready()
        # The heading above users and roles; Django's default ("Authentication and Authorization")
        # names the mechanism.
        apps.get_app_config("auth").verbose_name = "People"
        import_module("delivery.console.pages")
