"""`listen`: fetch a mailbox, show or forward each message, and acknowledge it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from delivery.management.client.listener import Handler, MailboxListener, is_temporary
from delivery.management.client.mailbox import RemoteMailbox
from delivery.management.client.outputs import Forwarder, Printer
from delivery.management.client.rest import ClientError, RestClient
from delivery.management.client.terminal_text import visible_text
from subscriptions.values.names import is_name

# Messages are printed quickly, so several are fetched together; forwarding a message may take a
# minute.
SHOWN_AT_ONCE, SHOWN_SECONDS = 10, 30
FORWARDED_AT_ONCE, FORWARDED_SECONDS = 1, 90
LOOKED_AT = 10


class Command(BaseCommand):
    help = (
        "Fetch a subscriber's mailbox, print each message or forward it to a local URL, "
        "and acknowledge it; until Ctrl-C. A repeated message has the same id (webhook-id)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("subscriber", help="whose mailbox")
        parser.add_argument("--url", default=settings.ENVIRONMENT.base_url, help="where Inturn is")
        parser.add_argument(
            "--key",
            default=settings.ENVIRONMENT.fetch_key,
            help=(
                "a fetch key of the subscriber; rather set INTURN_FETCH_KEY, "
                "which `ps` does not show"
            ),
        )
        parser.add_argument(
            "--forward",
            metavar="URL",
            help=(
                "POST each message there: 2xx acknowledges it, "
                "any other answer returns it for a while"
            ),
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object a line")
        parser.add_argument("--max", type=int, metavar="N", help="end after this many messages")
        parser.add_argument(
            "--once", action="store_true", help="end when the mailbox is empty, or Inturn away"
        )
        parser.add_argument(
            "--no-ack",
            action="store_true",
            help=(
                f"only look: print the next messages ({LOOKED_AT}, or --max) "
                "and give it back; it counts as fetched"
            ),
        )

    def handle(self, *args: Any, subscriber: str, url: str, key: str, **options: Any) -> None:
        _check(subscriber, url, key, options)
        with _interrupted_by(signal.SIGTERM), RestClient(url, key=key) as client:
            listener = self._listener(RemoteMailbox(client, subscriber), options)
            try:
                self._listen(listener, options, f"{subscriber} at {url}")
            except (KeyboardInterrupt, BrokenPipeError):
                # Not a failure: the reader of the output has closed it, or a signal ended the
                # command.
                pass
            except ClientError as error:
                raise CommandError(visible_text(f"{error}{_advice(error, options)}")) from error
            finally:
                listener.end()
        self._say(f"{listener.acknowledged} acknowledged, {listener.released} given back")

    def _listener(self, mailbox: RemoteMailbox, options: dict[str, Any]) -> MailboxListener:
        url = options["forward"]
        handle: Handler = (
            Forwarder(url, say=self._write)
            if url
            else Printer(self._write, as_json=options["json"])
        )
        return MailboxListener(
            mailbox=mailbox,
            handle=handle,
            say=self._say,
            at_once=FORWARDED_AT_ONCE if url else SHOWN_AT_ONCE,
            visibility=FORWARDED_SECONDS if url else SHOWN_SECONDS,
        )

    def _listen(self, listener: MailboxListener, options: dict[str, Any], place: str) -> None:
        if options["no_ack"]:
            if not listener.look(most=options["max"] or LOOKED_AT):
                self._say("There is nothing to fetch now.")
            return
        self._say(f"listening to the mailbox of {place}; Ctrl-C ends")
        listener.listen(most=options["max"], ends_when_empty=options["once"])

    def _write(self, text: str) -> None:
        self.stdout.write(text, ending="")
        # A message is acknowledged only after the text is written out.
        self.stdout.flush()

    def _say(self, text: str) -> None:
        # Without a style: Django would print it in red, as an error.
        self.stderr.write(visible_text(text), str)


def _check(subscriber: str, url: str, key: str, options: dict[str, Any]) -> None:
    if not is_name(subscriber):
        raise CommandError(
            f"{subscriber!r} is no subscriber's name: letters, digits, and . _ - between them."
        )
    if not _is_http(url):
        raise CommandError("--url needs the URL of an Inturn, such as http://127.0.0.1:8000.")
    if not key:
        raise CommandError(
            f"Give a fetch key of {subscriber} by INTURN_FETCH_KEY or --key; "
            "an administrator makes it on the subscriber's page."
        )
    if options["max"] is not None and options["max"] < 1:
        raise CommandError("--max must be 1 or more.")
    if options["forward"] and not _is_http(options["forward"]):
        raise CommandError("--forward needs a URL, such as http://127.0.0.1:9000/hook.")
    if options["forward"] and (options["no_ack"] or options["json"]):
        raise CommandError("--no-ack and --json are for printing; with --forward leave them out.")


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        # Raises ValueError for an invalid port.
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _advice(error: ClientError, options: dict[str, Any]) -> str:
    if not (options["once"] and is_temporary(error)):
        return ""
    return "\nWith --once it is not tried again; without, it waits until Inturn answers."


@contextmanager
def _interrupted_by(number: signal.Signals) -> Iterator[None]:
    """Within the block, make the signal act like Ctrl-C."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(number, interrupt)
    try:
        yield
    finally:
        signal.signal(number, before)
