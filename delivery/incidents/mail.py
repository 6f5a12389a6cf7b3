"""Sending alerts by mail, with Django's settings."""

import smtplib
from collections.abc import Callable, Sequence

from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from delivery.models import IncidentAlert
from subscriptions.values.counts import counted

# More alerts of a recipient are sent as a single mail.
MOST_MAILS = 5


class MailError(Exception):
    """The server did not take the mail; the message says why."""


def send_mails(
    recipient: str,
    alerts: Sequence[IncidentAlert],
    *,
    note: Callable[[Sequence[IncidentAlert]], None],
) -> None:
    """Send each alert as a mail, or many as one, and record each accepted alert; raises MailError.

    A mail has the first alert's id as Message-ID: a repeated mail has the same.
    """
    groups = [[alert] for alert in alerts] if len(alerts) <= MOST_MAILS else [list(alerts)]
    try:
        with get_connection() as connection:
            for group in groups:
                connection.send_messages([_mail(recipient, group)])
                note(group)
    except (OSError, smtplib.SMTPException) as error:
        raise MailError(f"{type(error).__name__}: {error}") from error


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
