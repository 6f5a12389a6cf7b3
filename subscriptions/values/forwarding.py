"""The headers of a message sent along to an endpoint.

A subscription lists patterns: each is a header name, or the beginning of names followed by `*`; a
single `*` matches every header. Some headers are never sent along, even if they are listed: those
of the connection or the body, credentials, those in control of Inturn, and Inturn's own names for
receivers.

A message keeps headers under a single spelling, `header_name`. A header is sent under the list's
spelling, with underscores, so a receiver finds `X_Custom_Id`; those matched by a `*` are sent as
kept, but TeamForge's FILTER_STRING, which has no other name.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from subscriptions.filters import header_name
from subscriptions.values.header_values import (
    HOP_BY_HOP,
    MAX_HEADERS,
    MAX_TOTAL_LENGTH,
    HeaderError,
    is_header_name,
    is_sendable,
)

MAX_PATTERNS = 50
ANY = "*"
# The credential passed on by the publisher of a SYNC message.
FORWARD_AUTHORIZATION = "x-forward-authorization"
# Headers of a message, made by Inturn: the answered message. Nobody else can set them.
REPLIED_PREFIX = "inturn-replied-"

_FILTER_STRING = "FILTER_STRING"
_RESERVED_NAMES = HOP_BY_HOP | {
    "accept-encoding",
    "authorization",
    "callbackurl",
    "cookie",
    "cookie2",
    "destination",
    "errorsto",
    "expect",
    "forwarded",
    "host",
    "idempotency-key",
    "proxy",
    "replyto",
    FORWARD_AUTHORIZATION,
}
_RESERVED_PREFIXES = ("content-", "inturn-", "proxy-", "webhook-", "x-forwarded-")


@dataclass(frozen=True, slots=True)
class ForwardedHeaders:
    """The headers of a message for an endpoint.

    `left_out` are the names of headers too large or impossible to send.
    """

    headers: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """Return the note of an attempt about omitted headers; empty if there are none."""
        if not self.left_out:
            return ""
        names = ", ".join(self.left_out[:10]) + (", …" if len(self.left_out) > 10 else "")
        return (
            f"sent without headers of the message: {names} (at most {MAX_HEADERS} headers of "
            f"{MAX_TOTAL_LENGTH} characters together are sent along)"
        )


def is_never_forwarded(name: str) -> bool:
    return name in _RESERVED_NAMES or name.startswith(_RESERVED_PREFIXES)


def checked_patterns(texts: Iterable[str]) -> list[str]:
    """Return the patterns as stored: lower-case, without two for the same header.

    Raises HeaderError for a pattern without any match.
    """
    spelled: dict[str, str] = {}
    for text in texts:
        pattern = text.strip().lower()
        spelled.setdefault(header_name(pattern), pattern)
    patterns = list(spelled.values())
    if len(patterns) > MAX_PATTERNS:
        raise HeaderError(f"Give at most {MAX_PATTERNS} names; one that ends in * stands for many.")
    for pattern in patterns:
        _check_pattern(pattern)
    return patterns


def _check_pattern(pattern: str) -> None:
    beginning = pattern.removesuffix(ANY)
    if ANY in beginning or not (pattern == ANY or is_header_name(beginning)):
        raise HeaderError(
            f"{pattern[:50]!r} is no header name. Give a name such as X-GitHub-Event, its "
            "beginning with * at the end, or * for all."
        )
    is_reserved = (
        header_name(beginning).startswith(_RESERVED_PREFIXES)
        if pattern.endswith(ANY)
        else is_never_forwarded(header_name(pattern))
    )
    if is_reserved:
        raise HeaderError(
            f"{pattern} is never sent along: it belongs to Inturn, the connection, the body or the "
            "publisher's credentials. Leave it out."
        )


def forwarded_headers(
    stored: Mapping[str, str], patterns: Collection[str], *, own: Mapping[str, str]
) -> ForwardedHeaders:
    """Select the headers to send along from those stored with a message, in the order of names.

    A subscription's own header replaces the message's of the same name. Headers beyond the limits
    are left out. A value with a line break is never sent, no matter how it came to be stored.
    """
    if not patterns:
        return ForwardedHeaders()
    own_names = {header_name(name) for name in own}
    spelled = {header_name(pattern): pattern for pattern in patterns}
    count, length = len(own), sum(map(len, own)) + sum(map(len, own.values()))
    chosen: dict[str, str] = {}
    skipped: list[str] = []
    for name in sorted(stored):
        if is_never_forwarded(name) or name in own_names or not _matches(name, spelled):
            continue
        value = stored[name].strip(" \t")
        size = len(name) + len(value)
        if count >= MAX_HEADERS or length + size > MAX_TOTAL_LENGTH or not is_sendable(name, value):
            skipped.append(name)
            continue
        chosen[_sent_name(name, spelled)] = value
        count, length = count + 1, length + size
    return ForwardedHeaders(chosen, tuple(skipped))


def _sent_name(name: str, spelled: Mapping[str, str]) -> str:
    usual = _FILTER_STRING if name == header_name(_FILTER_STRING) else name
    sent = spelled.get(name, usual)
    return usual if sent == usual.lower() else sent


def _matches(name: str, patterns: Collection[str]) -> bool:
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith(ANY) else name == pattern
        for pattern in patterns
    )
