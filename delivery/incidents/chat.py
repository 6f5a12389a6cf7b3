"""Sending alerts to the webhooks of chats: Slack, Mattermost, Teams and others take this shape."""

from collections.abc import Callable, Sequence

import orjson

from delivery.calls.http import post_json
from delivery.models import IncidentAlert

CALL_SECONDS = 10.0


class ChatError(Exception):
    """The webhook did not take the text; the message says why."""


def send_chat(
    url: str, alerts: Sequence[IncidentAlert], *, note: Callable[[Sequence[IncidentAlert]], None]
) -> None:
    """Post the texts of the alerts as one `{"text": …}`, and record it; raises ChatError."""
    text = "\n\n".join(f"{alert.subject}\n{alert.text}" for alert in alerts)
    if fault := post_json(url, orjson.dumps({"text": text}), seconds=CALL_SECONDS):
        raise ChatError(fault)
    note(alerts)
