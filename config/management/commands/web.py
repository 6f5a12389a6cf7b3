"""`web`: run the web server alone, for a machine without `up`."""

import os
from typing import Any

from django.core.management.base import BaseCommand

from config import env
from config.backup.restore_marker import require_no_unfinished_restore
from config.env import CHECKOUT
from config.up import processes
from config.up.child import print_line, web_command
from config.up.preflight import exposure
from config.up.tls import require_usable
from delivery.management.doctor.python_version import python_weakness


class Command(BaseCommand):
    help = "Serve the console and the API on INTURN_LISTEN and PORT until SIGTERM or SIGINT."
    # Started without Django's apps: see config/up/command_line.py.
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        environment = env.read_environment()
        require_no_unfinished_restore(environment.home)
        if environment.tls is not None:
            require_usable(environment.tls)
        for warning in exposure(environment):
            print_line(warning)
        if weakness := python_weakness():
            print_line(f"warning: {weakness}")
        command = web_command(environment)
        os.chdir(CHECKOUT)
        os.execve(command[0], command, processes.environment())
