"""Sending alerts: mail and chats in threads of their own, while any are due.

A hanging server delays neither the duties nor the other channel, and has `EMAIL_TIMEOUT` or
`CALL_SECONDS` for each answer. Without due alerts there is neither a thread nor a connection.
"""

import logging
import smtplib
from collections.abc import Sequence
from datetime import datetime
from threading import Thread

import orjson
from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.db import connection
from django.utils import timezone

from delivery.calls.http import post_json
from delivery.cluster.named_connections import connections_of
from delivery.cluster.stop_event import stopping
from delivery.database.connections import TCP_TIMEOUTS
from delivery.incidents.claims import claim_alerts, due_channels, note_failed, note_sent
from delivery.models import AlertChannel, IncidentAlert
from subscriptions.values.counts import counted

log = logging.getLogger(__name__)

# More alerts of a recipient are sent as a single mail.
MOST_MAILS = 5
# For each answer of a chat.
CALL_SECONDS = 10.0


class NotSentError(Exception):
    """The server did not take the mail or the text; the message says why."""


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
        send = _send_mails if channel == AlertChannel.MAIL else _send_chat
        send(claimed.alerts[0].url or claimed.recipient, claimed.alerts)
    except NotSentError as error:
        log.warning("alerts not sent", extra={"channel": channel.value, "error": str(error)})
        note_failed(claimed, error=str(error), now=timezone.now())
    return True


def _note(alerts: Sequence[IncidentAlert]) -> None:
    note_sent([alert.pk for alert in alerts], now=timezone.now())


def _send_mails(recipient: str, alerts: Sequence[IncidentAlert]) -> None:
    """Send each alert as a mail, or many as one, and record each accepted alert.

    A mail has the first alert's id as Message-ID: a repeated mail has the same.
    """
    groups = [[alert] for alert in alerts] if len(alerts) <= MOST_MAILS else [list(alerts)]
    try:
        with get_connection() as connection:
            for group in groups:
                connection.send_messages([_mail(recipient, group)])
                _note(group)
    except (OSError, smtplib.SMTPException) as error:
        raise NotSentError(f"{type(error).__name__}: {error}") from error


def _mail(recipient: str, alerts: Sequence[IncidentAlert]) -> EmailMessage:
    first = alerts[0]
    subject, text = first.subject, first.text
    if len(alerts) > 1:
        subject = f"[Inturn] {counted(len(alerts), 'incident')} opened or closed"
        text = "\n\n\n".join(f"{alert.subject}\n{alert.text}" for alert in alerts)
    host = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2]
    return EmailMessage(
        subject=subject,
        body=text,
        to=[recipient],
        headers={
            "Message-ID": f"<incident-{first.incident_id}-alert-{first.pk}@{host}>",
            # So absence notes are not sent back.
            "Auto-Submitted": "auto-generated",
        },
    )


def _send_chat(url: str, alerts: Sequence[IncidentAlert]) -> None:
    """Post the texts of the alerts as one `{"text": …}`, and record it.

    Slack, Mattermost, Teams and others take this shape.
    """
    text = "\n\n".join(f"{alert.subject}\n{alert.text}" for alert in alerts)
    if fault := post_json(url, orjson.dumps({"text": text}), seconds=CALL_SECONDS):
        raise NotSentError(fault)
    _note(alerts)
