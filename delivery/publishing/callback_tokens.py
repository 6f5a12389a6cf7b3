"""Tokens, which make the URL given to an endpoint impossible to guess.

A token is the callback's id and an authentication code over it, `<id>.<code>`. The code is
HMAC-SHA256, cut to 144 bits, under a key derived from the installation's secret key for this
purpose only (RFC 5869, with the purpose as `info`). So nothing secret is stored, and every machine
with the secret key makes and accepts the same token, after any restart. A change of the secret key
invalidates the tokens under way. The tokens of replies (`reply_headers`) have the id of a delivery,
and a key for another purpose.
"""

import base64
import hmac
import re
from functools import lru_cache

_PURPOSE = b"inturn callback token v1"
_CODE_BYTES = 18
_TOKEN = re.compile(r"([1-9][0-9]{0,18})\.([A-Za-z0-9_-]{24})")


@lru_cache(maxsize=8)
def callback_key(secret_key: str) -> bytes:
    """Return the key for tokens."""
    return purpose_key(secret_key, _PURPOSE)


def purpose_key(secret_key: str, purpose: bytes) -> bytes:
    """Derive the key for a purpose from the installation's secret key."""
    extracted = hmac.digest(b"inturn", secret_key.encode(), "sha256")
    return hmac.digest(extracted, purpose + b"\x01", "sha256")


def callback_url(callback_id: int, *, base_url: str, key: bytes) -> str:
    """Return the URL to which an endpoint posts the answer."""
    return f"{base_url}/callbacks/{make_token(callback_id, key=key)}"


def make_token(id: int, *, key: bytes) -> str:
    return f"{id}.{_code(id, key)}"


def read_token(token: str, *, key: bytes) -> int | None:
    """Return the id in a token, or None for a token made with another key."""
    parts = _TOKEN.fullmatch(token)
    if parts is None:
        return None
    id = int(parts[1])
    # In constant time: the duration of a refusal must not show how much of the code was right.
    return id if hmac.compare_digest(parts[2], _code(id, key)) else None


def _code(id: int, key: bytes) -> str:
    code = hmac.digest(key, str(id).encode(), "sha256")[:_CODE_BYTES]
    return base64.urlsafe_b64encode(code).decode()
