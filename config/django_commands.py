"""Running commands that need Django, and most of them the database."""

import sys

from django.apps import apps
from django.conf import settings
from django.core.management import execute_from_command_line
from django.db import InternalError, OperationalError

from subscriptions.database_away import is_read_only

# A cluster serves no console and no API: without them it starts sooner and takes less memory.
WITHOUT_PAGES = ("qcluster",)
PAGES = ("unfold", "delivery.console", "rest_framework", "drf_spectacular")

# SQLSTATE classes of lost connections, and of a stopping or starting server.
AWAY = ("08", "57P")
REASON_CHARACTERS = 300


def run_command(argv: list[str]) -> None:
    """Run a command; an unreachable database is reported in one line."""
    # If they are loaded already, the launcher did it, and the web server shares the memory.
    if argv[1:] and argv[1] in WITHOUT_PAGES and not apps.ready:
        settings.INSTALLED_APPS = [
            app for app in settings.INSTALLED_APPS if not app.startswith(PAGES)
        ]
    try:
        execute_from_command_line(argv)
    except OperationalError as error:
        if not _is_away(error):
            raise
        sys.exit(f"inturn: no database answers {_advice(error)}")
    except InternalError as error:
        if not is_read_only(error):
            raise
        sys.exit(
            f"inturn: the database is read-only now ({reason(error)}): repeat the command later"
        )


def reason(error: Exception) -> str:
    """Return the database's message in one line."""
    return " ".join(str(error).split())[:REASON_CHARACTERS]


def _is_away(error: OperationalError) -> bool:
    """Return whether no server answers; other errors, such as a deadlock, are faults of Inturn."""
    state: str | None = getattr(error.__cause__, "sqlstate", None)
    # Errors during connecting have no SQLSTATE.
    return state is None or state.startswith(AWAY)


def _advice(error: OperationalError) -> str:
    environment = settings.ENVIRONMENT
    if environment.database_url:
        return f"({reason(error)}): start it, or correct DATABASE_URL"
    return (
        f"(none runs on {environment.home}, and DATABASE_URL is not set): "
        "start `python3 manage.py up`, or set DATABASE_URL"
    )
