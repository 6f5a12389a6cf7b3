"""Runs a command; what the person who gave it can mend is told in one line, without a traceback."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from django.core.exceptions import ImproperlyConfigured

# They only start other processes. Setting up Django would cost them more time and memory
# than all that they do, and `up` runs for years: it imports nothing that it does not need.
WITHOUT_DJANGO = ("up", "web", "test")


def run(argv: Sequence[str]) -> None:
    """Run `manage.py`'s command; a wrong setting or an absent database ends it with exit status 1."""
    if argv[1:2] != ["test"]:
        # Logs, the archive, reports: what Inturn writes holds what was published. Processes inherit it.
        os.umask(0o077)
    try:
        _run(list(argv))
    except ImproperlyConfigured as error:
        sys.exit(f"inturn: {error}")


def _run(argv: list[str]) -> None:
    if argv[1:] and argv[1] in WITHOUT_DJANGO:
        import_module(f"config.management.commands.{argv[1]}").Command().run_from_argv(argv)
        return
    from config import django_commands

    django_commands.run(argv)
