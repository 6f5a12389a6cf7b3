"""Who waits at a mailbox, and whose turn it is to look."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from delivery.mailbox.notifications import understand
from delivery.mailbox.waiters import REMEMBERED, Waiter, Waiters

BOX, OTHER = 7, 8


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def looks(waiter: Waiter) -> bool:
    return waiter.turn.done() and waiter.turn.result()


def now() -> float:
    return asyncio.get_running_loop().time()


def enter(waiters: Waiters, *, mailbox: int = BOX) -> Waiter:
    """One whose fetch found nothing a moment ago."""
    return waiters.enter(mailbox, since=now() + 1)


def test_news_wakes_the_first_of_that_mailbox_and_nobody_else() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        first, second, elsewhere = enter(waiters), enter(waiters), enter(waiters, mailbox=OTHER)
        waiters.tell([BOX])
        assert [looks(first), looks(second), looks(elsewhere)] == [True, False, False]

    run(scenario())


def test_more_news_wakes_nobody_while_one_looks() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        enter(waiters)
        second = enter(waiters)
        waiters.tell([BOX])
        waiters.tell([BOX])
        assert not looks(second)

    run(scenario())


def test_who_found_something_wakes_the_next() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        first, second, third = enter(waiters), enter(waiters), enter(waiters)
        waiters.tell([BOX])
        waiters.leave(first, may_be_more=True)
        assert [looks(second), looks(third)] == [True, False]

    run(scenario())


def test_who_found_nothing_is_the_first_again() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        first, second = enter(waiters), enter(waiters)
        waiters.tell([BOX])
        waiters.again(first)
        assert [looks(first), looks(second)] == [False, False]
        waiters.tell([BOX])
        assert [looks(first), looks(second)] == [True, False]

    run(scenario())


def test_news_that_came_while_one_looked_is_looked_for_again() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        first = enter(waiters)
        waiters.tell([BOX])
        waiters.tell([BOX])
        waiters.again(first)
        assert looks(first)

    run(scenario())


def test_news_since_the_fetch_that_found_nothing_is_not_lost() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        began_at = now()
        waiters.tell([BOX])
        assert looks(waiters.enter(BOX, since=began_at))
        assert not looks(waiters.enter(OTHER, since=began_at))

    run(scenario())


def test_news_from_before_the_fetch_is_old() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        waiters.tell([BOX])
        assert not looks(enter(waiters))

    run(scenario())


def test_who_leaves_while_it_is_its_turn_passes_the_turn_on() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        first, second = enter(waiters), enter(waiters)
        waiters.tell([BOX])
        waiters.leave(first, may_be_more=True)
        assert looks(second)

    run(scenario())


def test_a_failed_look_wakes_nobody() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        first, second = enter(waiters), enter(waiters)
        waiters.tell([BOX])
        waiters.leave(first, may_be_more=False)
        assert not looks(second)
        waiters.tell([BOX])
        assert looks(second)

    run(scenario())


def test_who_leaves_while_it_waits_changes_nothing_for_others() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        first, second = enter(waiters), enter(waiters)
        waiters.leave(first, may_be_more=True)
        assert not looks(second)
        waiters.tell([BOX])
        assert looks(second)

    run(scenario())


def test_a_mailbox_that_nobody_waits_at_is_forgotten() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        first, second = enter(waiters), enter(waiters)
        assert list(waiters.mailboxes) == [BOX]
        waiters.tell([BOX])
        waiters.leave(first, may_be_more=True)
        waiters.leave(second, may_be_more=True)
        assert list(waiters.mailboxes) == []

    run(scenario())


def test_old_news_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        waiters = Waiters()
        began_at = now()
        monkeypatch.setattr("delivery.mailbox.waiters.FETCH_SECONDS", -1.0)
        waiters.tell(range(REMEMBERED + 1))
        assert not looks(waiters.enter(BOX, since=began_at))

    run(scenario())


def test_a_stop_lets_nobody_wait() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        looking, waiting = enter(waiters), enter(waiters)
        waiters.tell([BOX])
        waiters.stop()
        late = enter(waiters)
        assert looks(looking)
        assert [(one.turn.done(), looks(one)) for one in (waiting, late)] == [(True, False)] * 2
        waiters.again(looking)
        assert (looking.turn.done(), looks(looking)) == (True, False)
        for one in (looking, waiting, late):
            waiters.leave(one, may_be_more=True)
        assert list(waiters.mailboxes) == []

    run(scenario())


@pytest.mark.parametrize(
    ("payload", "understood"), [("12,34", [12, 34]), ("7", [7]), ("", []), ("x,1,-2,", [1])]
)
def test_a_notification_names_mailboxes(payload: str, understood: list[int]) -> None:
    assert understand(payload) == understood
