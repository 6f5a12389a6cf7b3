"""Sending alerts to the webhooks of chats: Slack, Mattermost, Teams and others take this shape."""

from collections.abc import Callable, Sequence

import orjson
from django.conf import settings

from delivery.models import IncidentAlert

CALL_SECONDS = 10.0


class ChatError(Exception):
    """The webhook did not take the text; the message says why."""


def send_chat(
    url: str, alerts: Sequence[IncidentAlert], *, note: Callable[[Sequence[IncidentAlert]], None]
) -> None:
    """Post the texts of the alerts as one `{"text": …}`, and note that; raises ChatError."""
    # Not at the top: it loads `requests`, which chores without a chat do not need.
    from delivery.calls.http import NoAnswerError, post_guarded

    text = "\n\n".join(f"{alert.subject}\n{alert.text}" for alert in alerts)
    try:
        status = post_guarded(
            url,
            orjson.dumps({"text": text}),
            seconds=CALL_SECONDS,
            allowed_networks=settings.ENVIRONMENT.allowed_networks,
        )
    except NoAnswerError as error:
        raise ChatError(str(error)) from error
    if not 200 <= status < 300:
        raise ChatError(f"it answered {status}")
    note(alerts)
