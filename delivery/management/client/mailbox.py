"""A client of a mailbox: fetch messages by REST, and acknowledge, release or reject each."""

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from delivery.management.client.rest import ClientError, RefusedError, RestClient

MOST_AT_ONCE = 100
LONGEST_WAIT_SECONDS = 20

_CONFLICT = 409
# Only to find the end of a value: numbers of any length stay text.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedMessage:
    """A message as handed out. `body` has the published bytes, unchanged."""

    id: str
    event: str
    published_at: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    is_json: bool
    receive_count: int
    receipt: str


class RemoteMailbox:
    """The mailbox of a subscriber. Every call raises ClientError; none is repeated."""

    def __init__(self, client: RestClient, subscriber: str) -> None:
        self._client = client
        self._path = f"mailboxes/{subscriber}"

    def fetch(self, *, most: int, wait: int = 0, visibility: int = 30) -> list[FetchedMessage]:
        """Return up to `most` messages, leased for `visibility` seconds.

        Wait for the first if requested.
        """
        query = f"max={min(most, MOST_AT_ONCE)}&wait={wait}&visibility={visibility}"
        answer = self._client.content("POST", f"{self._path}/next?{query}")
        try:
            return parse_messages(answer)
        except (ValueError, LookupError, TypeError) as error:
            raise ClientError("The server at this URL is not Inturn; check the URL.") from error

    def acknowledge(self, receipts: Sequence[str]) -> dict[str, str]:
        """Settle them as DELIVERED; return receipt → reason for failures. It is safe to repeat."""
        return self._end("ack", receipts)

    def release(self, receipts: Sequence[str], *, delay: int = 0) -> dict[str, str]:
        """Release them, to be fetched again after `delay` seconds.

        Return receipt → reason as `acknowledge`.
        """
        return self._end(f"release?delay={delay}", receipts)

    def reject(self, receipts: Sequence[str]) -> dict[str, str]:
        """Settle them as REJECTED; return receipt → reason as `acknowledge` does."""
        return self._end("reject", receipts)

    def _end(self, verb: str, receipts: Sequence[str]) -> dict[str, str]:
        try:
            answer = self._client.post(f"{self._path}/{verb}", {"receipts": list(receipts)})
        except RefusedError as refused:
            # The answer for a single late receipt.
            if refused.status != _CONFLICT or len(receipts) != 1:
                raise
            return {receipts[0]: str(refused)}
        return {
            result["receipt"]: result["error"] or ""
            for result in answer["results"]
            if not result["ok"]
        }


def parse_messages(answer: bytes) -> list[FetchedMessage]:
    """Parse the answer of `next`.

    A JSON body is cut out of the answer's text: parsed and serialized again it could differ.
    """
    if not answer:
        return []
    shown = orjson.loads(answer)["messages"]
    return [_fetched(*pair) for pair in zip(shown, _bodies(answer.decode()), strict=True)]


def _fetched(shown: Mapping[str, Any], body: str | None) -> FetchedMessage:
    return FetchedMessage(
        **{
            name: shown[name]
            for name in ("id", "event", "published_at", "headers", "receive_count", "receipt")
        },
        body=base64.b64decode(shown["body_base64"]) if body is None else body.encode(),
        is_json=body is not None,
    )


def _bodies(text: str) -> Iterator[str | None]:
    """Yield the text of each message's member `body`, None for a message without."""
    begin = next(begin for name, begin, _ in _members(text, 0) if name == "messages")
    place = _after_space(text, begin) + 1
    while text[(place := _after_space(text, place))] == "{":
        members = list(_members(text, place))
        yield next((text[begin:end] for name, begin, end in members if name == "body"), None)
        # Skip the closing brace, and the comma if present.
        place = _after_space(text, members[-1][2] + 1)
        place += text[place] == ","


def _members(text: str, begin: int) -> Iterator[tuple[str, int, int]]:
    """Yield the name and the bounds of the value of each member of the object at `begin`."""
    place = _after_space(text, begin)
    while text[place] != "}":
        name, place = _DECODER.raw_decode(text, _after_space(text, place + 1))
        value = _after_space(text, place) + 1
        _, place = _DECODER.raw_decode(text, _after_space(text, value))
        place = _after_space(text, place)
        yield name, value, place


def _after_space(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    assert match is not None
    return match.end()
