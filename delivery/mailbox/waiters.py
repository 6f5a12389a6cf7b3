"""Clients that wait at mailboxes, in the order in which they came: whose turn it is to look.

A waiting client is a place in a queue and nothing else: no thread and no database connection. Per mailbox there are
those who wait and at most one who looks, that is, has been told to fetch:

    enter ──▶ waits ──news──▶ looks ──found something──▶ gone, and the next looks
                ▲               │
                └─found nothing─┘   and is the first again

- News wakes one, however many wait; what one leaves behind the next gets, because who found something tells the next.
- Nothing is lost between the fetch that found nothing and the place in the queue: news that came since that fetch
  began counts as news for who enters.
- One who goes away while it is its turn passes the turn on.
- What nobody tells of (a visibility that ended, a delay that is over, a lost notification) is found by who asks the
  database every second, see `mailbox_news`.

Somebody who comes just then and fetches at once may be quicker than all who wait. All of it runs on one event loop.
"""

import asyncio
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

# By which a view tells the web server, and nobody else, whose mailbox was empty for a client that wants to wait.
WAIT_HEADER = "inturn-wait"
# What is older than any fetch under way is forgotten once there is so much of it.
REMEMBERED = 10_000
FETCH_SECONDS = 60.0


@dataclass(eq=False, slots=True)
class Waiter:
    """One waiting client's place; `turn` is True when it is its turn to look, False when it is to wait no longer."""

    mailbox: int
    turn: asyncio.Future[bool]


@dataclass(slots=True)
class _Queue:
    waiting: deque[Waiter] = field(default_factory=deque)
    looking: Waiter | None = None
    has_news: bool = False


class Waiters:
    """All that wait in this process; a mailbox is a subscriber's id, a moment the event loop's time."""

    def __init__(self) -> None:
        self._queues: dict[int, _Queue] = {}
        self._news_at: dict[int, float] = {}
        self._is_stopped = False

    @property
    def mailboxes(self) -> Collection[int]:
        """Those that somebody waits at."""
        return self._queues.keys()

    @property
    def count(self) -> int:
        """How many wait or look; may be asked from any thread."""
        return sum(len(queue.waiting) + bool(queue.looking) for queue in list(self._queues.values()))

    def count_at(self, mailbox: int) -> int:
        """How many wait or look at one mailbox."""
        queue = self._queues.get(mailbox)
        return 0 if queue is None else len(queue.waiting) + bool(queue.looking)

    def enter(self, mailbox: int, *, since: float) -> Waiter:
        """Wait behind the others; `since` is the moment when the fetch began that found nothing."""
        queue = self._queues.setdefault(mailbox, _Queue())
        waiter = Waiter(mailbox, _turn())
        queue.waiting.append(waiter)
        if self._is_stopped:
            waiter.turn.set_result(False)
        elif (told_at := self._news_at.get(mailbox)) is not None and told_at >= since:
            queue.has_news = True
            _wake(queue)
        return waiter

    def tell(self, mailboxes: Iterable[int]) -> None:
        """There is news: in each of these the first who waits may look."""
        now = asyncio.get_running_loop().time()
        for mailbox in mailboxes:
            self._news_at[mailbox] = now
            if queue := self._queues.get(mailbox):
                queue.has_news = True
                _wake(queue)
        if len(self._news_at) > REMEMBERED:
            self._news_at = {mailbox: at for mailbox, at in self._news_at.items() if at > now - FETCH_SECONDS}

    def again(self, waiter: Waiter) -> None:
        """It looked and found nothing: it is the first to look at the next news."""
        queue = self._queues[waiter.mailbox]
        queue.looking = None
        waiter.turn = _turn()
        queue.waiting.appendleft(waiter)
        if self._is_stopped:
            waiter.turn.set_result(False)
        else:
            _wake(queue)

    def leave(self, waiter: Waiter, *, may_be_more: bool) -> None:
        """Let the next look at once if there may be more, or if it was its turn and it did not look."""
        queue = self._queues[waiter.mailbox]
        if queue.looking is waiter:
            queue.looking = None
            queue.has_news |= may_be_more
        else:
            queue.waiting.remove(waiter)
        _wake(queue)
        if queue.looking is None and not queue.waiting:
            del self._queues[waiter.mailbox]

    def stop(self) -> None:
        """Let nobody wait any longer."""
        self._is_stopped = True
        for queue in self._queues.values():
            for waiter in queue.waiting:
                if not waiter.turn.done():
                    waiter.turn.set_result(False)


def _turn() -> asyncio.Future[bool]:
    return asyncio.get_running_loop().create_future()


def _wake(queue: _Queue) -> None:
    if queue.has_news and queue.looking is None and queue.waiting:
        queue.has_news = False
        queue.looking = queue.waiting.popleft()
        if not queue.looking.turn.done():
            queue.looking.turn.set_result(True)
