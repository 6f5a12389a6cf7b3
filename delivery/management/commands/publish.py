"""`publish`: publish JSON lines from a file or standard input, none of them twice."""

import secrets
import sys
from argparse import FileType
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

import orjson
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from delivery.management.client.rest import ClientError, RefusedError, RestClient
from subscriptions.filters import header_name
from subscriptions.values.counts import counted

MAX_BATCH = 1000
NDJSON = {"Content-Type": "application/x-ndjson"}

Line = tuple[int, bytes]


class LineError(Exception):
    """A line cannot be published; the message has the line's number and the reason."""


@dataclass(slots=True)
class PublishedLines:
    """The progress of publishing. A line's idempotency key is the prefix and the number."""

    next_line: int
    key_prefix: str
    accepted: int = 0

    def how_to_go_on(self) -> str:
        """Return advice valid after any failure.

        Lines with the same keys are not published again.
        """
        return (
            f"Accepted: {counted(self.accepted, 'message')}. "
            f"Go on with --from-line {self.next_line} --idempotency-prefix {self.key_prefix} "
            "within 24 hours, so that none is published twice."
        )


class Command(BaseCommand):
    help = (
        "Publish JSON lines: each line is one message's body, or with --envelope the whole message."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("event", help="event type of lines that do not name one")
        parser.add_argument("file", nargs="?", type=FileType("rb"), default=sys.stdin.buffer)
        parser.add_argument("--key", required=True, help="a publisher's key")
        parser.add_argument("--url", default=settings.ENVIRONMENT.base_url)
        parser.add_argument("--batch", type=int, default=100, help="messages a request, 1 to 1000")
        parser.add_argument(
            "--envelope",
            action="store_true",
            help="lines are {event, headers, body, idempotency_key}",
        )
        parser.add_argument(
            "--from-line", type=int, default=1, help="begin with this line, counted from 1"
        )
        parser.add_argument(
            "--idempotency-prefix",
            default="",
            help=(
                "to continue after a fault: "
                "the prefix of the keys of lines without one (otherwise random)"
            ),
        )

    def handle(self, *args: Any, event: str, file: BinaryIO, **options: Any) -> None:
        if not 1 <= options["batch"] <= MAX_BATCH:
            raise CommandError(f"--batch must be from 1 to {MAX_BATCH}.")
        prefix = options["idempotency_prefix"] or secrets.token_hex(8)
        published_lines = PublishedLines(options["from_line"], prefix)
        to_item = _enveloped if options["envelope"] else _wrapped
        items = (
            (number, to_item((number, line), event=event, key=f"{prefix}-{number}"))
            for number, line in _lines(file, first=published_lines.next_line)
        )
        try:
            with RestClient(options["url"], key=options["key"]) as client:
                _publish(client, items, lines=published_lines, batch_size=options["batch"])
        except (ClientError, LineError) as error:
            raise CommandError(f"{error}\n{published_lines.how_to_go_on()}") from error
        except KeyboardInterrupt:
            raise CommandError(f"stopped.\n{published_lines.how_to_go_on()}") from None
        self.stdout.write(f"{counted(published_lines.accepted, 'message')} accepted")


def _publish(
    client: RestClient, items: Iterator[Line], *, lines: PublishedLines, batch_size: int
) -> None:
    with tqdm(unit=" messages", disable=None, file=sys.stderr) as progress:
        while batch := list(islice(items, batch_size)):
            lines.accepted += _publish_batch(client, batch)
            lines.next_line = batch[-1][0] + 1
            progress.update(len(batch))


def _publish_batch(client: RestClient, batch: Sequence[Line]) -> int:
    """Return the number of accepted messages: all of them, as a batch is a transaction."""
    body = b"\n".join(item for _, item in batch)
    try:
        answer = client.call(
            "POST", "messages:batch", body=body, headers=NDJSON, is_repeatable=True
        )
    except RefusedError as refused:
        raise LineError(_words(refused, batch)) from refused
    return len(answer["results"])


def _words(refused: RefusedError, batch: Sequence[Line]) -> str:
    index = refused.problem.get("index")
    place = (
        f"line {batch[index][0]}"
        if isinstance(index, int)
        else f"lines {batch[0][0]} to {batch[-1][0]}"
    )
    fields = refused.problem.get("errors", [])
    return "\n".join(
        [
            f"{place}: {refused}",
            *(f"  {field.get('field')}: {field.get('detail')}" for field in fields),
        ]
    )


def _lines(file: BinaryIO, *, first: int) -> Iterator[Line]:
    for number, line in enumerate(file, 1):
        if number >= first and line.strip():
            yield number, line.strip()


def _wrapped(line: Line, *, event: str, key: str) -> bytes:
    """Return the item of a batch whose body is the line, byte for byte."""
    _parsed(line)
    members = {"event": event, "idempotency_key": key}
    return orjson.dumps(members)[:-1] + b',"body":' + line[1] + b"}"


def _enveloped(line: Line, *, event: str, key: str) -> bytes:
    """Return the line as an item, with event type and key if it lacks them.

    The line's own bytes are kept.
    """
    content = _parsed(line)
    if not isinstance(content, dict) or not content:
        return line[1]
    defaults = {} if "event" in content else {"event": event}
    if not _has_key(content):
        defaults["idempotency_key"] = key
    return line[1][:-1] + b"," + orjson.dumps(defaults)[1:] if defaults else line[1]


def _has_key(content: Mapping[str, Any]) -> bool:
    headers = content.get("headers")
    names = headers if isinstance(headers, dict) else {}
    return content.get("idempotency_key") is not None or "idempotency-key" in map(
        header_name, names
    )


def _parsed(line: Line) -> Any:
    number, text = line
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise LineError(f"line {number} is not JSON: {error.msg}, column {error.colno}") from error
