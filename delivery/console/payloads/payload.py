"""Payloads, which someone else wrote: made fit to be looked at, by those who may, and the log of who did."""

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, User

from delivery.database.queries import named_row
from delivery.models.payload_view import SEE_PAYLOADS

SHOWN_BYTES = 256 * 1024
SHOWN_BINARY_BYTES = 4 * 1024
_LINE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """`text` is plain text, to be escaped as any other; `is_cut` when there is more than is shown."""

    text: str
    size: int
    is_binary: bool
    is_cut: bool


def may_see_payload(user: User | AnonymousUser) -> bool:
    """Whether somebody may see bodies, header values and excerpts of answers."""
    return user.has_perm(SEE_PAYLOADS)


def log_view(user: User | AnonymousUser, message_id: int) -> None:
    """Log that somebody is shown a message's payload; call it before it is shown, whatever the page."""
    named_row("view_payload", {"actor": user.get_username(), "message": message_id})


def payload(body: bytes) -> Payload:
    shown = body[:SHOWN_BYTES]
    text = _text(shown, is_cut=len(body) > SHOWN_BYTES)
    if text is not None:
        return Payload(text=text, size=len(body), is_binary=False, is_cut=len(body) > SHOWN_BYTES)
    return Payload(
        text=hexadecimal(body[:SHOWN_BINARY_BYTES]),
        size=len(body),
        is_binary=True,
        is_cut=len(body) > SHOWN_BINARY_BYTES,
    )


def hexadecimal(body: bytes) -> str:
    """Return lines of offset, 16 bytes in hexadecimal, and the same as ASCII."""
    lines = []
    for offset in range(0, len(body), _LINE):
        part = body[offset : offset + _LINE]
        ascii_part = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
        lines.append(f"{offset:08x}  {part.hex(' '):<{_LINE * 3 - 1}}  {ascii_part}")
    return "\n".join(lines)


def _text(body: bytes, *, is_cut: bool) -> str | None:
    """Return UTF-8 text, or None for what is none; a character cut in two at the end is left out."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        if not is_cut or error.start < len(body) - 3:
            return None
        text = body[: error.start].decode()
    return None if "\0" in text else text
