"""Signatures as Standard Webhooks 1.0.0 describes them: v1, HMAC-SHA256."""

import base64
import hmac
from collections.abc import Iterable

PREFIX = "whsec_"


def signing_key(secret: str) -> bytes:
    """Return the key bytes of a `whsec_…` secret; raise ValueError if it is not base64."""
    return base64.b64decode(secret.removeprefix(PREFIX), validate=True)


def signature(keys: Iterable[bytes], *, webhook_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of `webhook-signature`: one signature a key, so any of them verifies."""
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    return " ".join(
        "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys
    )
