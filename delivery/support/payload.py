"""Payloads of messages: display, the permission to see them, and the log of views."""

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, User

from delivery.database.queries import named_row
from delivery.models.payload_view import SEE_PAYLOADS
from delivery.support.json_text import indented

SHOWN_BYTES = 256 * 1024
SHOWN_BINARY_BYTES = 4 * 1024
_LINE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """A payload for display.

    `text` is plain text, to be escaped like any other; `is_cut` if only the beginning is shown.
    """

    text: str
    size: int
    is_binary: bool
    is_cut: bool

    @property
    def pretty(self) -> str:
        """The text indented, if it is JSON and complete; otherwise empty."""
        return "" if self.is_binary or self.is_cut else indented(self.text) or ""


def may_see_payload(user: User | AnonymousUser) -> bool:
    """Return whether the user may see bodies, header values and excerpts of answers."""
    return user.has_perm(SEE_PAYLOADS)


def log_view(user: User | AnonymousUser, message_id: int) -> None:
    """Log a user's view of a message's payload; call it before showing it, on every page."""
    named_row("view_payload", {"actor": user.get_username(), "message": message_id})


def payload_of(body: bytes) -> Payload:
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
    """Return UTF-8 text, or None for binary data; drop a character cut at the end."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        if not is_cut or error.start < len(body) - 3:
            return None
        text = body[: error.start].decode()
    return None if "\0" in text else text
