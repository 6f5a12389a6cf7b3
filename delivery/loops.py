"""What the loops of chores and of the pipeline share: a process, connections that people can tell, and pauses that end when Inturn stops."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from delivery.stopping import stopping

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.5
LOOK_SECONDS = 0.25

Loop = Callable[[], None]


def insist_on(loop: Loop) -> None:
    """Run a loop until Inturn stops, again if it fails."""
    while not stopping.is_set():
        try:
            loop()
        except Exception:
            log.exception("a cluster's loop failed")
            connection.close()
            time.sleep(RETRY_SECONDS)


def side_by_side(first: Loop, *others: Loop) -> Loop:
    """Return a loop that runs all of these in one process, the first in the main thread: only there may processes be started.

    A loop that fails is run again, and the others go on meanwhile.
    """

    def run() -> None:
        threads = [
            threading.Thread(target=insist_on, args=(loop,), name=f"loop {number}", daemon=True)
            for number, loop in enumerate(others, start=1)
        ]
        for thread in threads:
            thread.start()
        insist_on(first)
        for thread in threads:
            thread.join()

    return run


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
