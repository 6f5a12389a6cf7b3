"""The loops that send alerts: one for mail and one for chats, in threads of their own.

A server that hangs delays neither the duties nor the other channel, and has `EMAIL_TIMEOUT` or
`CALL_SECONDS` for each answer.
"""

import logging
import time
from collections.abc import Sequence

from django.db import connection
from django.utils import timezone

from delivery.cluster.loops import connections_of, pause_until
from delivery.cluster.stopping import stopping
from delivery.database.connections import TCP_TIMEOUTS
from delivery.incidents.chat import ChatError, send_chat
from delivery.incidents.claims import claim_alerts, note_failed, note_sent
from delivery.incidents.mail import MailError, send_mails
from delivery.models import AlertChannel, IncidentAlert

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0


def send_alerts(channel: AlertChannel) -> None:
    """Send the alerts of a channel until Inturn stops."""
    with connections_of(f"alerts {channel.value.lower()}", settings=TCP_TIMEOUTS):
        try:
            while not stopping.is_set():
                if not send_next(channel):
                    pause_until(time.monotonic() + POLL_SECONDS)
        finally:
            connection.close()


def send_next(channel: AlertChannel) -> bool:
    """Send the due alerts of one recipient; return False if nothing was due."""
    claimed = claim_alerts(channel, now=timezone.now())
    if claimed is None:
        return False
    try:
        send = send_mails if channel == AlertChannel.MAIL else send_chat
        send(claimed.recipient, claimed.alerts, note=_note)
    except (MailError, ChatError) as error:
        log.warning("alerts not sent", extra={"channel": channel.value, "error": str(error)})
        note_failed(claimed, error=str(error), now=timezone.now())
    return True


def _note(alerts: Sequence[IncidentAlert]) -> None:
    note_sent([alert.pk for alert in alerts], now=timezone.now())
