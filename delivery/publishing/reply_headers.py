"""The headers of replies: the address for a reply to a delivery, and the correlation of a reply.

The address has a token of the delivery: an authentication code over the id, made as those of
callbacks are. So nothing is stored before somebody replies, and a token proves the sending of the
delivery: nobody else has it.
"""

from collections.abc import Mapping
from functools import lru_cache

from delivery.models.lane import CALLBACK_EVENT_TYPE
from delivery.publishing.callback_tokens import make_token, purpose_key
from subscriptions.matching.reply_to import REPLY_TO
from subscriptions.values.forwarding import REPLIED_PREFIX

REPLY_URL = "inturn-reply"
MESSAGE = REPLIED_PREFIX + "message"

_PURPOSE = b"inturn reply token v1"


@lru_cache(maxsize=8)
def reply_key(secret_key: str) -> bytes:
    """Return the key for tokens."""
    return purpose_key(secret_key, _PURPOSE)


def reply_url(delivery_id: int, *, base_url: str, key: bytes) -> str:
    """Return the URL to which the receiver of a delivery posts the reply."""
    return f"{base_url}/replies/{make_token(delivery_id, key=key)}"


def may_be_replied_to(
    headers: Mapping[str, str], *, event: str, replay_id: int | None = None
) -> bool:
    """Return whether the receiver of a delivery may reply.

    A replay is of old messages, whose publishers expect no more replies. A callback's answer has
    unchecked headers, and goes to a URL of a publisher.
    """
    return REPLY_TO in headers and replay_id is None and event != CALLBACK_EVENT_TYPE


def correlation(headers: Mapping[str, str]) -> dict[str, str]:
    """Return a reply's headers about the answered message; empty for other messages."""
    if MESSAGE not in headers:
        return {}
    return {name: value for name, value in headers.items() if name.startswith(REPLIED_PREFIX)}
