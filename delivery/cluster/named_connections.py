"""Named connections, for the loops of chores and of the pipeline."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created


@contextmanager
def connections_of(name: str, *, settings: str) -> Iterator[None]:
    """Name each connection opened by Django in this thread, and begin it with these statements."""
    thread = threading.get_ident()

    def arrange(*, connection: BaseDatabaseWrapper, **_: Any) -> None:
        if threading.get_ident() != thread:
            return
        with connection.cursor() as cursor:
            cursor.execute(settings)
            cursor.execute(
                "SELECT set_config('application_name', %s, false)", [f"inturn {name} {os.getpid()}"]
            )

    # Signals hold only weak references: `arrange` lives as long as this frame.
    connection_created.connect(arrange)
    # An already open connection was not arranged.
    connection.close()
    try:
        yield
    finally:
        connection_created.disconnect(arrange)
