"""What a filter is asked of: the headers of a message beside its body."""

from collections.abc import Callable, Mapping
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
        self._texts: dict[int, str] = {}
        self._identities: dict[int, str] = {}

    @cached_property
    def body(self) -> jsonb.Json | jsonb.Missing:
        return jsonb.parse_jsonb(self._raw_body)

    def text_of(self, value: jsonb.Json | jsonb.Missing) -> str | None:
        """What `->>` gives of a value of this document. A container is printed once, whoever asks."""
        if type(value) is dict or type(value) is list:
            return _kept(self._texts, value, jsonb.printed)
        return jsonb.text_of(value)

    def identity_of(self, value: jsonb.Json) -> str:
        """What is the same text for equal values, and for no others; of a container it is made once, too."""
        if type(value) is dict or type(value) is list:
            return _kept(self._identities, value, jsonb.canonical)
        return jsonb.canonical(value)


def _kept(texts: dict[int, str], value: jsonb.Json, made: Callable[[jsonb.Json], str]) -> str:
    # The document keeps its values alive, so that no other takes the id of one.
    text = texts.get(id(value))
    if text is None:
        text = texts[id(value)] = made(value)
    return text


def document(headers: Mapping[str, str], body: bytes) -> Document:
    """Make one for each message and ask all its filters: the body is parsed only once."""
    return Document({header_name(name): value for name, value in headers.items()}, body)
