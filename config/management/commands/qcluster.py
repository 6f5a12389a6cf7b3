"""`qcluster`: run this machine's sender loops, a django-q2 cluster that stops when it is told to."""

import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from config import clusters


class Command(BaseCommand):
    help = "Run a django-q2 cluster of this machine until SIGTERM or SIGINT."
    # `prepare` has checked the same.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("-n", "--name", choices=clusters.CLUSTERS, default="senders")

    def handle(self, *args: Any, **options: Any) -> None:
        # django-q2 reads the name of the queue from the environment in some of its processes.
        os.environ["Q_CLUSTER_NAME"] = clusters.queue_name(options["name"], settings.ENVIRONMENT.home)
        clusters.run()
