"""The bodies of fetched messages as they stand in JSON answers: as they were published, or not at all."""

import orjson

from delivery.mailbox.fetch import LeasedMessage
from subscriptions.values.media_types import is_json

# A body that is nested deeper is handed out as bytes; orjson reads to a depth of 1,024.
DEEPEST = 500
_ALLOWANCE = b"[" * (1_024 - DEEPEST), b"]" * (1_024 - DEEPEST)


def json_of(fetched: LeasedMessage) -> orjson.Fragment | None:
    """Return a body that is JSON, by its content type and in fact, with each digit and key as it was published."""
    is_shown = is_json(fetched.content_type) and _is_readable(fetched.body)
    return orjson.Fragment(fetched.body) if is_shown else None


def _is_readable(body: bytes) -> bool:
    """Whether it is JSON that every reader can take in: nested too deep, it would cost them what stands beside it, too."""
    try:
        orjson.loads(body)
        if body.count(b"[") + body.count(b"{") > DEEPEST:
            orjson.loads(_ALLOWANCE[0] + body + _ALLOWANCE[1])
    except orjson.JSONDecodeError:
        return False
    return True
