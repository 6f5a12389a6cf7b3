"""`web`: run the web server alone, for a machine without `up`."""

import os
from typing import Any

from django.core.management.base import BaseCommand

from config import env
from config.env import CHECKOUT
from config.up import processes
from config.up.child import web_command


class Command(BaseCommand):
    help = "Serve the console and the API on INTURN_LISTEN and PORT until SIGTERM or SIGINT."
    # Started without Django's apps: see config/up/command_line.py.
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        command = web_command(env.read_environment())
        os.chdir(CHECKOUT)
        os.execve(command[0], command, processes.environment())
