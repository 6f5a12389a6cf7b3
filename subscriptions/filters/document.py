"""What a filter is asked of: the headers of a message beside its body."""

from collections.abc import Mapping
from functools import cached_property

from subscriptions.filters import jsonb


def header_name(name: str) -> str:
    """The one spelling under which a header is stored and asked for.

    `FILTER_STRING` and `Filter-String` are the same header.
    """
    return name.lower().replace("_", "-")


class Document:
    """One message as filters see it. The body is parsed when a filter first asks."""

    def __init__(self, header: jsonb.Json, raw_body: bytes) -> None:
        self.header = header
        self._raw_body = raw_body

    @cached_property
    def body(self) -> jsonb.Json | jsonb.Missing:
        return jsonb.read(self._raw_body)


def document(headers: Mapping[str, str], body: bytes) -> Document:
    """Make one for each message and ask all its filters: the body is parsed only once."""
    return Document({header_name(name): value for name, value in headers.items()}, body)
