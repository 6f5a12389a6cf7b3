"""What the loops of chores and of the pipeline share: connections that people can tell, and pauses that end when Inturn stops."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from delivery.cluster.stopping import stopping

LOOK_SECONDS = 0.25


@contextmanager
def connections_of(name: str, *, settings: str) -> Iterator[None]:
    """Let each connection that Django opens in this thread say whose it is, and begin with these statements."""
    ours = threading.get_ident()

    def arrange(*, connection: BaseDatabaseWrapper, **_: Any) -> None:
        if threading.get_ident() != ours:
            return
        with connection.cursor() as cursor:
            cursor.execute(settings)
            cursor.execute(
                "SELECT set_config('application_name', %s, false)", [f"inturn {name} {os.getpid()}"]
            )

    # Signals hold only weakly what they call: `arrange` lives as long as this does.
    connection_created.connect(arrange)
    # What is open was not arranged.
    connection.close()
    try:
        yield
    finally:
        connection_created.disconnect(arrange)


def pause(until: float) -> None:
    """Wait for that reading of the monotonic clock, or until Inturn stops."""
    # Not by waiting for the event: who is killed while it waits would keep others from setting it.
    while not stopping.is_set() and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
