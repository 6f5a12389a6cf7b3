"""Sending alerts: mail and chats in threads of their own, while any are due.

A hanging server delays neither the duties nor the other channel, and has `EMAIL_TIMEOUT` or
`CALL_SECONDS` for each answer. Without due alerts there is neither a thread nor a connection.
"""

import logging
from collections.abc import Sequence
from datetime import datetime
from threading import Thread

from django.db import connection
from django.utils import timezone

from delivery.cluster.named_connections import connections_of
from delivery.cluster.stop_event import stopping
from delivery.database.connections import TCP_TIMEOUTS
from delivery.incidents.chat import ChatError, send_chat
from delivery.incidents.claims import claim_alerts, due_channels, note_failed, note_sent
from delivery.incidents.mail import MailError, send_mails
from delivery.models import AlertChannel, IncidentAlert

log = logging.getLogger(__name__)


def are_due(now: datetime) -> bool:
    """Return whether `AlertThreads.begin` may find something."""
    return bool(due_channels(now=now))


class AlertThreads:
    """The threads that send alerts, at most one for each channel."""

    def __init__(self) -> None:
        self._threads: dict[AlertChannel, Thread] = {}

    def begin(self, now: datetime) -> int:
        """Start a thread for each channel with due alerts but without a thread.

        Return 0, no work for the duties' loop: a failed thread is only started again after a pause.
        """
        channels = [channel for channel in due_channels(now=now) if not self._is_sending(channel)]
        for channel in channels:
            self._threads[channel] = thread = Thread(
                target=_send_due, args=(channel,), name=f"alerts {channel}", daemon=True
            )
            thread.start()
        return 0

    def wait(self) -> None:
        """Wait until the threads have sent the claimed alerts, after Inturn began to stop."""
        for thread in self._threads.values():
            thread.join()

    def _is_sending(self, channel: AlertChannel) -> bool:
        return channel in self._threads and self._threads[channel].is_alive()


def _send_due(channel: AlertChannel) -> None:
    """Send the due alerts of a channel; after a fault of ours a later turn sends the rest."""
    with connections_of(f"alerts {channel.value.lower()}", settings=TCP_TIMEOUTS):
        try:
            while not stopping.is_set() and send_next(channel):
                continue
        except Exception:
            log.exception("alerts broken off", extra={"channel": channel.value})
        finally:
            connection.close()


def send_next(channel: AlertChannel) -> bool:
    """Send the due alerts of a recipient; return False if nothing was due."""
    claimed = claim_alerts(channel, now=timezone.now())
    if claimed is None:
        return False
    try:
        send = send_mails if channel == AlertChannel.MAIL else send_chat
        send(claimed.alerts[0].url or claimed.recipient, claimed.alerts, note=_note)
    except (MailError, ChatError) as error:
        log.warning("alerts not sent", extra={"channel": channel.value, "error": str(error)})
        note_failed(claimed, error=str(error), now=timezone.now())
    return True


def _note(alerts: Sequence[IncidentAlert]) -> None:
    note_sent([alert.pk for alert in alerts], now=timezone.now())
