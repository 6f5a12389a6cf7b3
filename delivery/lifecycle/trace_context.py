"""W3C trace context, and the ids of spans: derived, so nothing about traces is stored.

The web server makes the span of publishing a message, and a sender makes those of the attempts,
perhaps days later. Both derive the same ids from the ids of message, delivery and attempt, with a
key of the installation.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

TRACEPARENT, TRACESTATE = "traceparent", "tracestate"
SAMPLED = 0x01

# Later versions may append fields; version ff does not exist.
_TRACEPARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_PERSON = b"inturn traces v1"
_KEY_BYTES = 64


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The place of a span: `state` is the vendors' part, as it was received."""

    trace_id: int
    span_id: int
    is_sampled: bool
    state: str = ""

    def headers(self) -> dict[str, str]:
        """Return the headers of a request in the trace."""
        parent = f"00-{self.trace_id:032x}-{self.span_id:016x}-{SAMPLED * self.is_sampled:02x}"
        return (
            {TRACEPARENT: parent, TRACESTATE: self.state} if self.state else {TRACEPARENT: parent}
        )


def received_context(headers: Mapping[str, str]) -> TraceContext | None:
    """Return the context sent by a message's publisher; None without a valid context."""
    found = _TRACEPARENT.fullmatch(headers.get(TRACEPARENT, ""))
    if found is None or (found[1] == "00" and found[5]):
        return None
    is_sampled = bool(int(found[4], 16) & SAMPLED)
    state = headers.get(TRACESTATE, "")
    return TraceContext(int(found[2], 16), int(found[3], 16), is_sampled, state)


def handed_on(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the publisher's trace headers for a receiver, unchanged; none if they are invalid."""
    if received_context(headers) is None:
        return {}
    return {name: headers[name] for name in (TRACEPARENT, TRACESTATE) if headers.get(name)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedAttempt:
    """An attempt by ids; `number` counts from 1. `headers` are the message's."""

    message_id: int
    delivery_id: int
    number: int
    event: str
    headers: Mapping[str, str]


class SpanIds:
    """The ids of an installation's spans; `key` is a secret of it."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()[:_KEY_BYTES]

    def trace_of_message(self, message_id: int) -> int:
        return self._derived("message", message_id, size=16)

    def span_of_message(self, message_id: int) -> int:
        return self._derived("publish", message_id, size=8)

    def trace_of_attempt(self, attempt: TracedAttempt) -> int:
        return self._derived("retry", attempt.delivery_id, attempt.number, size=16)

    def span_of_attempt(self, attempt: TracedAttempt) -> int:
        return self._derived("attempt", attempt.delivery_id, attempt.number, size=8)

    def _derived(self, kind: str, *ids: int, size: int) -> int:
        text = ":".join([kind, *map(str, ids)]).encode()
        digest = blake2b(text, digest_size=size, key=self._key, person=_PERSON)
        # Zero is no id.
        return int.from_bytes(digest.digest()) or 1
