"""Running a command; errors the user can fix are reported in one line, without a traceback."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from django.core.exceptions import ImproperlyConfigured

from config.version import version

# These only start other processes. Setting up Django would take more time and memory than all their
# work, and `up` runs for years, so it imports only the necessary.
WITHOUT_DJANGO = ("up", "web", "test", "unit", "settings", "backup", "restore", "ready")


def main() -> None:
    """Run the command `inturn` of an environment with Inturn's wheel."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    run_command_line(sys.argv)


def run_command_line(argv: Sequence[str]) -> None:
    """Run `manage.py`'s command; a wrong setting or an unreachable database exits with status 1."""
    if argv[1:2] != ["test"]:
        # Logs, archive and reports contain published data; child processes inherit the mask.
        os.umask(0o077)
    drop_foreign_settings()
    try:
        _run(list(argv))
    except ImproperlyConfigured as error:
        sys.exit(f"inturn: {error}")


def drop_foreign_settings() -> None:
    """Remove PG* variables, which are for another server, unless DATABASE_URL names the server."""
    if not (os.environ.get("DATABASE_URL") or os.environ.get("DATABASE_URL_FILE")):
        for name in [name for name in os.environ if name.startswith("PG")]:
            del os.environ[name]


def _run(argv: list[str]) -> None:
    if argv[1:] in (["--version"], ["version"]):  # Django would print its own.
        print(f"Inturn {version()}")
        return
    if argv[1:]:  # A command is a module, whose name cannot have a hyphen.
        argv[1] = argv[1].replace("-", "_") if not argv[1].startswith("-") else argv[1]
    if argv[1:] and argv[1] in WITHOUT_DJANGO:
        import_module(f"config.management.commands.{argv[1]}").Command().run_from_argv(argv)
        return
    from config import django_commands

    django_commands.run_command(argv)
