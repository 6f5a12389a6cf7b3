"""The document for the evaluation of filters: a message's headers and body."""

from collections.abc import Callable, Mapping
from functools import cached_property

from subscriptions.filters import jsonb


def header_name(name: str) -> str:
    """Return the spelling under which a header is stored and looked up.

    `FILTER_STRING` and `Filter-String` are the same header.
    """
    return name.lower().replace("_", "-")


class Document:
    """A message as filters see it. The body is parsed when a filter first needs it."""

    def __init__(self, header: jsonb.Json, raw_body: bytes) -> None:
        self.header = header
        self._raw_body = raw_body
        self._texts: dict[int, str] = {}
        self._identities: dict[int, str] = {}

    @cached_property
    def body(self) -> jsonb.Json | jsonb.Missing:
        return jsonb.parse_jsonb(self._raw_body)

    def text_of(self, value: jsonb.Json | jsonb.Missing) -> str | None:
        """Return the text of `->>` for a value; a container is printed only once."""
        if type(value) is dict or type(value) is list:
            return _kept(self._texts, value, jsonb.printed_text)
        return jsonb.text_of(value)

    def identity_of(self, value: jsonb.Json) -> str:
        """Return a text, equal for equal values only.

        For a container it is made only once.
        """
        if type(value) is dict or type(value) is list:
            return _kept(self._identities, value, jsonb.canonical_text)
        return jsonb.canonical_text(value)


def _kept(texts: dict[int, str], value: jsonb.Json, made: Callable[[jsonb.Json], str]) -> str:
    # The document keeps its values alive, so an id is never reused.
    text = texts.get(id(value))
    if text is None:
        text = texts[id(value)] = made(value)
    return text


def document(headers: Mapping[str, str], body: bytes) -> Document:
    """Return the document of a message.

    Share it between filters, so the body is parsed only once.
    """
    return Document({header_name(name): value for name, value in headers.items()}, body)
