"""The bodies of fetched messages in JSON answers: included exactly as published, or not at all."""

import orjson

from delivery.mailbox.fetch import LeasedMessage
from subscriptions.values.media_types import is_json

# Deeper bodies are returned as bytes; orjson reads to a depth of 1,024.
DEEPEST = 500
_ALLOWANCE = b"[" * (1_024 - DEEPEST), b"]" * (1_024 - DEEPEST)


def json_of(fetched: LeasedMessage) -> orjson.Fragment | None:
    """Return the body if it is declared and valid JSON, with each digit and key as published."""
    is_shown = is_json(fetched.content_type) and _is_readable(fetched.body)
    return orjson.Fragment(fetched.body) if is_shown else None


def _is_readable(body: bytes) -> bool:
    """Return whether every JSON parser can read the body.

    A body nested too deep would make the whole answer unreadable.
    """
    try:
        orjson.loads(body)
        if body.count(b"[") + body.count(b"{") > DEEPEST:
            orjson.loads(_ALLOWANCE[0] + body + _ALLOWANCE[1])
    except orjson.JSONDecodeError:
        return False
    return True
