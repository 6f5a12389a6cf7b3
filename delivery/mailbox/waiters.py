"""Clients waiting at mailboxes, in the order of arrival, and whose turn it is to fetch.

A waiting client is an entry in a queue and nothing else: no thread and no database connection. All
code here runs on a single event loop. `mailbox/README.md` has the states of a client, and says why
no notification is lost.
"""

import asyncio
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

# The header by which a view informs the web server, and nobody else, about the empty mailbox of a
# waiting client.
WAIT_HEADER = "inturn-wait"
# Above this number of entries, notifications older than any running fetch are dropped.
REMEMBERED = 10_000
FETCH_SECONDS = 60.0


@dataclass(eq=False, slots=True)
class Waiter:
    """A waiting client's entry; `turn` is True to fetch now, False to stop waiting."""

    mailbox: int
    turn: asyncio.Future[bool]


@dataclass(slots=True)
class _Queue:
    waiting: deque[Waiter] = field(default_factory=deque)
    looking: Waiter | None = None
    has_messages: bool = False


class Waiters:
    """All waiting clients of this process.

    A mailbox is a subscriber's id; times are the event loop's.
    """

    def __init__(self) -> None:
        self._queues: dict[int, _Queue] = {}
        self._notified_at: dict[int, float] = {}
        self._is_stopped = False

    @property
    def mailboxes(self) -> Collection[int]:
        """The mailboxes with waiting or looking clients."""
        return self._queues.keys()

    @property
    def count(self) -> int:
        """The number of waiting and looking clients; safe to call from any thread."""
        return sum(
            len(queue.waiting) + bool(queue.looking) for queue in list(self._queues.values())
        )

    def count_at(self, mailbox: int) -> int:
        """Return the number of waiting and looking clients of a mailbox."""
        queue = self._queues.get(mailbox)
        return 0 if queue is None else len(queue.waiting) + bool(queue.looking)

    def enter(self, mailbox: int, *, since: float) -> Waiter:
        """Enter the queue at the end; `since` is the beginning of the empty fetch."""
        queue = self._queues.setdefault(mailbox, _Queue())
        waiter = Waiter(mailbox, _turn())
        queue.waiting.append(waiter)
        if self._is_stopped:
            waiter.turn.set_result(False)
        elif (notified_at := self._notified_at.get(mailbox)) is not None and notified_at >= since:
            queue.has_messages = True
            _give_turn(queue)
        return waiter

    def notify(self, mailboxes: Iterable[int]) -> None:
        """Give the first waiting client of each of these mailboxes the turn to fetch."""
        now = asyncio.get_running_loop().time()
        for mailbox in mailboxes:
            self._notified_at[mailbox] = now
            if queue := self._queues.get(mailbox):
                queue.has_messages = True
                _give_turn(queue)
        if len(self._notified_at) > REMEMBERED:
            self._notified_at = {
                mailbox: at for mailbox, at in self._notified_at.items() if at > now - FETCH_SECONDS
            }

    def return_turn(self, waiter: Waiter) -> None:
        """Put a client after an empty fetch back as the first in the queue."""
        queue = self._queues[waiter.mailbox]
        queue.looking = None
        waiter.turn = _turn()
        queue.waiting.appendleft(waiter)
        if self._is_stopped:
            waiter.turn.set_result(False)
        else:
            _give_turn(queue)

    def leave(self, waiter: Waiter, *, may_be_more: bool) -> None:
        """Remove a client.

        Pass the turn on if there may be more messages, or if this client did not fetch.
        """
        queue = self._queues[waiter.mailbox]
        if queue.looking is waiter:
            queue.looking = None
            queue.has_messages |= may_be_more
        else:
            queue.waiting.remove(waiter)
        _give_turn(queue)
        if queue.looking is None and not queue.waiting:
            del self._queues[waiter.mailbox]

    def stop(self) -> None:
        """End the waiting of all clients."""
        self._is_stopped = True
        for queue in self._queues.values():
            for waiter in queue.waiting:
                if not waiter.turn.done():
                    waiter.turn.set_result(False)


def _turn() -> asyncio.Future[bool]:
    return asyncio.get_running_loop().create_future()


def _give_turn(queue: _Queue) -> None:
    if queue.has_messages and queue.looking is None and queue.waiting:
        queue.has_messages = False
        queue.looking = queue.waiting.popleft()
        if not queue.looking.turn.done():
            queue.looking.turn.set_result(True)
