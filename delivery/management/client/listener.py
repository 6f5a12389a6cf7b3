"""A listener of a mailbox: it fetches each message, passes it to an output, and acknowledges it.

At least once: a message taken but not acknowledged (a crash, a fetch by another client meanwhile)
comes again, with the same id. Requests to a silent Inturn are repeated until it does; a late
acknowledgement counts as long as nobody has fetched the message since, so a restart neither loses
nor doubles a message.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from delivery.management.client.mailbox import (
    LONGEST_WAIT_SECONDS,
    MOST_AT_ONCE,
    FetchedMessage,
    RemoteMailbox,
)
from delivery.management.client.rest import ClientError, RefusedError, UnreachableError
from subscriptions.values.schedules import doubling_pause

# Returns the reason why it could not take the message; empty if it has taken it.
Handler = Callable[[FetchedMessage], str]

LONGEST_PAUSE_SECONDS = 10
LONGEST_DELAY_SECONDS = 300
# An earlier empty answer did not wait, so the listener waits itself.
_SHORTEST_WAIT_SECONDS = 1.0
_BUSY = 429
_SERVER_ERROR = 500

_T = TypeVar("_T")


def is_temporary(error: ClientError) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(error, RefusedError):
        return error.status >= _SERVER_ERROR
    return isinstance(error, UnreachableError)


def delay_seconds(receive_count: int) -> int:
    """Return the delay of an untaken message: 2, 4, 8 … seconds."""
    return min(1 << min(receive_count, 16), LONGEST_DELAY_SECONDS)


@dataclass(slots=True, kw_only=True)
class MailboxListener:
    """The messages `fetched` were not passed on yet; those `handled` were, but not acknowledged.

    The rest of them is released and acknowledged at the end. `at_once` messages are fetched
    together, and all of them have to be taken within `visibility` seconds. `say` informs a person,
    `pause` waits.
    """

    mailbox: RemoteMailbox
    handle: Handler
    say: Callable[[str], None]
    at_once: int
    visibility: int
    pause: Callable[[float], None] = time.sleep
    acknowledged: int = 0
    released: int = 0
    fetched: list[FetchedMessage] = field(default_factory=list)
    handled: list[FetchedMessage] = field(default_factory=list)
    _gives_up: bool = False
    _failures: int = 0
    _failed_in_row: int = 0

    def listen(self, *, most: int | None, ends_when_empty: bool) -> None:
        """Take messages until there were `most`, or none is left, or forever.

        With `ends_when_empty` a silent Inturn raises an error, rather than being waited for.
        """
        self._gives_up = ends_when_empty
        wait = 0 if ends_when_empty else LONGEST_WAIT_SECONDS
        left = most
        while left is None or left > 0:
            began = time.monotonic()
            count = self._handle_batch(
                self.at_once if left is None else min(self.at_once, left), wait=wait
            )
            if count == 0:
                if ends_when_empty:
                    return
                self.pause(max(_SHORTEST_WAIT_SECONDS - (time.monotonic() - began), 0))
            left = None if left is None else left - count

    def look(self, *, most: int) -> int:
        """Show the next messages, without acknowledging; return their number.

        `end` releases all of them.
        """
        self.fetched = self.mailbox.fetch(most=min(most, MOST_AT_ONCE), visibility=self.visibility)
        for message in self.fetched:
            self.handle(message)
        return len(self.fetched)

    def end(self) -> None:
        """Acknowledge the messages taken and release the others.

        This is tried once: messages for which it fails return by themselves.
        """
        try:
            if receipts := [message.receipt for message in self.handled]:
                self._count_acknowledged(self.mailbox.acknowledge(receipts))
            if receipts := [message.receipt for message in self.fetched]:
                self.released += len(receipts) - len(self.mailbox.release(receipts))
        except ClientError as error:
            count = len(self.handled) + len(self.fetched)
            self.say(f"{error}\n{count} fetched messages return within {self.visibility} s.")

    def _handle_batch(self, most: int, *, wait: int) -> int:
        self.fetched = self._retry(
            lambda: self.mailbox.fetch(most=most, wait=wait, visibility=self.visibility)
        )
        count = len(self.fetched)
        while self.fetched:
            message = self.fetched[0]
            if reason := self.handle(message):
                self._release(message, reason)
            else:
                self.handled.append(message)
                self.fetched.pop(0)
                self._failed_in_row = 0
        self._acknowledge()
        return count

    def _acknowledge(self) -> None:
        if not self.handled:
            return
        receipts = [message.receipt for message in self.handled]
        self._count_acknowledged(self._retry(lambda: self.mailbox.acknowledge(receipts)))

    def _count_acknowledged(self, late: dict[str, str]) -> None:
        handled, self.handled = self.handled, []
        self.acknowledged += len(handled) - len(late)
        for message in handled:
            if message.receipt in late:
                self.say(f"{message.id} was not acknowledged: {late[message.receipt]}")

    def _release(self, message: FetchedMessage, reason: str) -> None:
        delay = delay_seconds(message.receive_count)
        late = self._retry(lambda: self.mailbox.release([message.receipt], delay=delay))
        # Before the pause, which Ctrl-C may end: `end` releases only the messages in `fetched`.
        self.fetched.pop(0)
        self.released += not late
        result = late.get(message.receipt) or f"released, and returns in {delay} s"
        self.say(f"{message.id} was not taken ({reason}): {result}")
        # A single failure may be due to the message; several in a row are due to the output, and
        # each fetch counts towards max_receives.
        self.pause(min(self._failed_in_row, LONGEST_PAUSE_SECONDS))
        self._failed_in_row += 1

    def _retry(self, call: Callable[[], _T]) -> _T:
        """Repeat a call until Inturn answers.

        A listener with `ends_when_empty` raises the error instead. Each of these calls is safe to
        repeat: the messages of a lost fetch come back.
        """
        while True:
            try:
                answer = call()
            except (RefusedError, UnreachableError) as error:
                if not self._is_waited_for(error):
                    raise
                self._wait_for_inturn(error)
            else:
                if self._failures:
                    self.say("Inturn answers again.")
                self._failures = 0
                return answer

    def _is_waited_for(self, error: RefusedError | UnreachableError) -> bool:
        if is_temporary(error):
            return not self._gives_up
        return isinstance(error, RefusedError) and error.status == _BUSY

    def _wait_for_inturn(self, error: ClientError) -> None:
        if not self._failures:
            self.say(f"{error}\nTrying again until it answers.")
        self._failures += 1
        self.pause(doubling_pause(1.0, failures=self._failures, longest=LONGEST_PAUSE_SECONDS))
