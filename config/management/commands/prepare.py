"""`prepare`: what has to be done to the database and the files before anything serves."""

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Migrate, create the administrator and the bootstrap key, collect static files. May be repeated."

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        call_command("provision")
        call_command("collectstatic", interactive=False, verbosity=0)
