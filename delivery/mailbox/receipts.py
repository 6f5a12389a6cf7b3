"""Receipts: what a client holds of one fetch, to say what became of it.

A receipt names the delivery, which of its fetches, and that fetch's token. It is a text without a meaning to
clients, fit to stand in a URL. It proves nothing by itself: only together with the key of the mailbox's subscriber.
"""

import base64
import binascii
import struct
from dataclasses import dataclass
from uuid import UUID

# A mark, so that what is no receipt is told from one; with it, base64 needs no padding.
_MARK = 0xFE01
_LAYOUT = struct.Struct(">HqI16s")
_LENGTH = len(base64.b64encode(bytes(_LAYOUT.size)))


@dataclass(frozen=True, slots=True)
class Receipt:
    """The fetch number `number` of a delivery; `token` was that delivery's lease then."""

    delivery_id: int
    number: int
    token: UUID

    def __str__(self) -> str:
        packed = _LAYOUT.pack(_MARK, self.delivery_id, self.number, self.token.bytes)
        return base64.urlsafe_b64encode(packed).decode()


def parse_receipt(text: str) -> Receipt | None:
    """Return the receipt that a text is, None if it is none."""
    if len(text) != _LENGTH or not text.isascii():
        return None
    try:
        packed = base64.b64decode(text, altchars=b"-_", validate=True)
    except binascii.Error:
        return None
    if len(packed) != _LAYOUT.size:
        return None
    mark, delivery_id, number, token = _LAYOUT.unpack(packed)
    receipt = Receipt(delivery_id, number, UUID(bytes=token))
    # The decoder takes the other alphabet's characters, too.
    return receipt if mark == _MARK and str(receipt) == text else None
