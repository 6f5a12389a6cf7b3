"""The environment of every test: a database server, a home, and permission to use the loopback.

Django reads its settings from the environment when they are first imported, so this module runs
before any Django code: `tests/conftest.py` imports it first.
"""

import atexit
import os
import shutil
import signal
import sys
import tempfile
from contextlib import ExitStack

import pytest

from config.embedded.postgres import throwaway

# Receivers of tests listen on the loopback, where endpoints are otherwise forbidden.
NETWORKS = "127.0.0.0/8"

# The shell without windows takes a quarter of the processor time for the same page.
CHROMIUM = next(
    filter(
        None,
        map(
            shutil.which,
            ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"),
        ),
    ),
    None,
)
HOW_TO_GET_CHROMIUM = "apt-get install chromium-headless-shell fonts-liberation"


def arrange() -> None:
    """Set the environment; the server it starts ends with this process."""
    _insist_on_unread_settings()
    # Background jobs of a shell ignore Ctrl-C, and their children inherit that: processes that the
    # tests start must react to it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    stack = ExitStack()
    atexit.register(stack.close)
    if not os.environ.get("DATABASE_URL"):
        os.environ["DATABASE_URL"] = stack.enter_context(throwaway())
    if "INTURN_HOME" not in os.environ:
        os.environ["INTURN_HOME"] = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="inturn-")
        )
    os.environ["INTURN_ALLOWED_NETWORKS"] = NETWORKS
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"


def _insist_on_unread_settings() -> None:
    # pytest-django imports the settings before any conftest if DJANGO_SETTINGS_MODULE is set.
    settled = (
        os.environ.get("DATABASE_URL") and os.environ.get("INTURN_ALLOWED_NETWORKS") == NETWORKS
    )
    if "config.settings" in sys.modules and not settled:
        raise pytest.UsageError(
            "DJANGO_SETTINGS_MODULE is set, so the settings were read before the tests chose a "
            "database: unset it, or run `manage.py test`"
        )
