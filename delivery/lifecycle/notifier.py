"""Notifying the senders, and web servers where clients wait at a mailbox.

A NOTIFY inside a publishing transaction takes a lock of the whole database through the commit. So a
thread in each process collects publishers' notifications and sends them as a single notification
after the commit; if it is lost, the senders find the work by their next poll. Only a lone message,
stored while the process stores no other, is notified in the storing transaction: the senders have
it half a millisecond sooner, and the lock delays only other processes which do the same.

Actions of people are rare, and no poll finds a delivery cancelled after the sender had read it. So
a nudge and a change are part of the reported transaction: a process killed after the commit has
sent them.
"""

import atexit
import contextlib
import logging
import threading
import time
from collections.abc import Iterable

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections

from delivery.database.connections import CHANNEL, MAILBOX_CHANNEL, connect_notifier

log = logging.getLogger(__name__)

# A notification's payload must stay below 8000 bytes.
IDS_A_PAYLOAD = 500
RECONNECT_SECONDS = 0.2


def notify_of_work(lane_ids: Iterable[int]) -> None:
    """Notify the senders of these lanes with work. Call it after the commit."""
    _collector.add({f"work {id}" for id in lane_ids})


def notify_of_messages(subscriber_ids: Iterable[int]) -> None:
    """Notify web servers of messages in these subscribers' mailboxes. Call it after the commit."""
    _collector.add({f"mailbox {id}" for id in subscriber_ids})


def nudge_lanes(*lane_ids: int) -> None:
    """Make these lanes read unsent deliveries again and end their pauses, after the commit."""
    _notify_by_transaction({f"nudge {id}" for id in lane_ids})


def notify_of_change() -> None:
    """Notify the senders of a changed subscription, policy or secret, after the commit."""
    _notify_by_transaction({"changed"})


def disconnect_notifier() -> None:
    """Close the database connection; the next call connects again."""
    _collector.disconnect()


class _Collector:
    """Collects notifications, and sends them from a separate thread."""

    def __init__(self) -> None:
        self._words: set[str] = set()
        self._arrived = threading.Condition()
        self._thread: threading.Thread | None = None
        self._connection: psycopg.Connection | None = None
        self._is_disconnected = False

    def add(self, words: set[str]) -> None:
        if not words:
            return
        with self._arrived:
            self._words |= words
            self._is_disconnected = False
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._notify_for_ever, name="notifier", daemon=True
                )
                self._thread.start()
            self._arrived.notify()

    def flush(self) -> None:
        """Send the remaining notifications: a short command must not leave them to the poll."""
        with self._arrived:
            words, self._words = self._words, set()
        if words:
            with contextlib.suppress(psycopg.Error), connect_notifier() as connection:
                _notify(connection, words)

    def disconnect(self) -> None:
        """Send nothing more: the database goes away."""
        self._is_disconnected = True
        if self._connection is not None:
            self._connection.close()

    def _notify_for_ever(self) -> None:
        while True:
            with self._arrived:
                self._arrived.wait_for(lambda: self._words)
                words, self._words = self._words, set()
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = connect_notifier()
                _notify(self._connection, words)
            except psycopg.Error as error:
                if self._is_disconnected:
                    return
                self._connection = None
                log.warning("senders not notified yet", extra={"error": str(error)})
                with self._arrived:
                    self._words |= words
                time.sleep(RECONNECT_SECONDS)


def _notify_by_transaction(words: set[str]) -> None:
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        for notification in notifications(words):
            cursor.execute("SELECT pg_notify(%s, %s)", notification)


def _notify(connection: psycopg.Connection, words: set[str]) -> None:
    for channel, payload in notifications(words):
        connection.execute("SELECT pg_notify(%s, %s)", (channel, payload))


def notifications(words: set[str]) -> list[tuple[str, str]]:
    """Return the channel and payload of each: mailboxes for web servers, all others for senders."""
    result = [(CHANNEL, word) for word in words if " " not in word]
    for kind in ("work", "nudge"):
        result += [(CHANNEL, f"{kind} {ids}") for ids in _ids(words, kind)]
    return result + [(MAILBOX_CHANNEL, ids) for ids in _ids(words, "mailbox")]


def _ids(words: set[str], kind: str) -> list[str]:
    ids = [word.partition(" ")[2] for word in words if word.startswith(f"{kind} ")]
    starts = range(0, len(ids), IDS_A_PAYLOAD)
    return [",".join(ids[start : start + IDS_A_PAYLOAD]) for start in starts]


_collector = _Collector()
atexit.register(_collector.flush)
