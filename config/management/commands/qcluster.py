"""`qcluster`: run all loops of this machine, or those with a name, as a django-q2 cluster."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from config.backup.restore_marker import require_no_unfinished_restore
from config.up import clusters
from delivery.database.versions import require_this_version


class Command(BaseCommand):
    help = "Run a django-q2 cluster of this machine until SIGTERM or SIGINT."
    # `prepare` runs the same checks.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("-n", "--name", choices=clusters.NAMES, help="run only these loops")

    def handle(self, *args: Any, **options: Any) -> None:
        require_no_unfinished_restore(settings.ENVIRONMENT.home)
        require_this_version()
        clusters.run_loops(options["name"], senders=settings.ENVIRONMENT.sender_processes)
