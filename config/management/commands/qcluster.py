"""`qcluster`: run the sender loops of this machine, or its chores, or its history: a django-q2 cluster that stops when it is told to."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from config import clusters


class Command(BaseCommand):
    help = "Run a django-q2 cluster of this machine until SIGTERM or SIGINT."
    # `prepare` has checked the same.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("-n", "--name", choices=clusters.CLUSTERS, default=clusters.SENDERS)

    def handle(self, *args: Any, **options: Any) -> None:
        clusters.run(options["name"])
