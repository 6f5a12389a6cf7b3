"""`publish`: publish JSON lines from a file or standard input."""

import sys
from argparse import FileType
from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO

import orjson
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from delivery.client import Client, ClientError, RefusedError, UnreachableError

MAX_BATCH = 1000
NDJSON = {"Content-Type": "application/x-ndjson"}

Line = tuple[int, bytes]


class Command(BaseCommand):
    help = "Publish JSON lines: each line is one message's body, or with --envelope the whole message."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("event", help="event type of lines that do not name one")
        parser.add_argument("file", nargs="?", type=FileType("rb"), default=sys.stdin.buffer)
        parser.add_argument("--key", required=True, help="a publisher's key")
        parser.add_argument("--url", default=settings.ENVIRONMENT.base_url)
        parser.add_argument("--batch", type=int, default=100, help="messages a request, 1 to 1000")
        parser.add_argument(
            "--envelope", action="store_true", help="lines are {event, headers, body, idempotency_key}"
        )
        parser.add_argument("--from-line", type=int, default=1, help="begin with this line, counted from 1")

    def handle(self, *args: Any, event: str, file: BinaryIO, **options: Any) -> None:
        if not 1 <= options["batch"] <= MAX_BATCH:
            raise CommandError(f"--batch must be from 1 to {MAX_BATCH}.")
        lines = _lines(file, first=options["from_line"])
        enveloped = ((number, _envelope(event, line, options["envelope"])) for number, line in lines)
        accepted = 0
        first = options["from_line"]
        try:
            with (
                Client(options["url"], key=options["key"]) as client,
                tqdm(unit=" messages", disable=None, file=sys.stderr) as progress,
            ):
                while batch := list(islice(enveloped, options["batch"])):
                    first = batch[0][0]
                    body = b"\n".join(line for _, line in batch)
                    accepted += len(
                        client.call("POST", "messages:batch", body=body, headers=NDJSON)["results"]
                    )
                    progress.update(len(batch))
        except (ClientError, ValueError) as error:
            raise CommandError(_advice(error, accepted=accepted, first=first)) from error
        except KeyboardInterrupt:
            raise CommandError(f"stopped; {accepted} messages were accepted.") from None
        self.stdout.write(f"{accepted} messages accepted")


def _lines(file: BinaryIO, *, first: int) -> Iterator[Line]:
    for number, line in enumerate(file, 1):
        if number >= first and line.strip():
            yield number, line.strip()


def _envelope(event: str, line: bytes, is_envelope: bool) -> bytes:
    """Return a line as the batch wants it; the body's own bytes are kept."""
    if is_envelope:
        content = orjson.loads(line)
        if isinstance(content, dict) and "event" not in content:
            content["event"] = event
        return orjson.dumps(content)
    return b'{"event": ' + orjson.dumps(event) + b', "body": ' + line + b"}"


def _advice(error: Exception, *, accepted: int, first: int) -> str:
    fields = error.problem.get("errors", []) if isinstance(error, RefusedError) else []
    words = [str(error), *(f"  {field.get('field')}: {field.get('detail')}" for field in fields)]
    words.append(f"{accepted} messages were accepted. Of those from line {first} on none was:")
    words.append(f"mend what is wrong and go on with --from-line {first}.")
    if isinstance(error, UnreachableError):
        words.append(
            "The last batch may have been accepted all the same; idempotency keys make that harmless."
        )
    return "\n".join(words)
