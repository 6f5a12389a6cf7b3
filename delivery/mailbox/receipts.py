"""Receipts: a receipt identifies a fetch of a delivery, for a client to acknowledge or return it.

A receipt contains the delivery's id, the number of the fetch, and the fetch's token. Clients treat
it as an opaque text; it is safe in a URL. It grants nothing by itself: a request also needs the key
of the mailbox's subscriber.
"""

import base64
import binascii
import struct
from dataclasses import dataclass
from uuid import UUID

# Distinguishes receipts from other texts; with these two bytes, base64 needs no padding.
_MARK = 0xFE01
_LAYOUT = struct.Struct(">HqI16s")
_LENGTH = len(base64.b64encode(bytes(_LAYOUT.size)))


@dataclass(frozen=True, slots=True)
class Receipt:
    """Fetch `number` of a delivery; `token` was the delivery's lease token then."""

    delivery_id: int
    number: int
    token: UUID

    def __str__(self) -> str:
        packed = _LAYOUT.pack(_MARK, self.delivery_id, self.number, self.token.bytes)
        return base64.urlsafe_b64encode(packed).decode()


def parse_receipt(text: str) -> Receipt | None:
    """Return the receipt; None if the text is not a receipt."""
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
    # The decoder accepts the characters of the other alphabet, too.
    return receipt if mark == _MARK and str(receipt) == text else None
