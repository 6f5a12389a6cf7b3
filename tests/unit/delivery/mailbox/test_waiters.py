"""The waiting clients of a mailbox, and their turns to fetch."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from delivery.mailbox.notifications import mailboxes_of_payload
from delivery.mailbox.waiters import REMEMBERED, Waiter, Waiters

BOX, OTHER = 7, 8


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def looks(waiter: Waiter) -> bool:
    return waiter.turn.done() and waiter.turn.result()


def now() -> float:
    return asyncio.get_running_loop().time()


def enter(waiters: Waiters, *, mailbox: int = BOX) -> Waiter:
    """Enter a client whose fetch found nothing a moment ago."""
    return waiters.enter(mailbox, since=now() + 1)


def test_a_notification_wakes_only_the_first_client_of_its_mailbox() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        first, second, elsewhere = enter(waiters), enter(waiters), enter(waiters, mailbox=OTHER)
        waiters.notify([BOX])
        assert [looks(first), looks(second), looks(elsewhere)] == [True, False, False]

    run(scenario())


def test_more_notifications_wake_nobody_while_one_client_fetches() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        enter(waiters)
        second = enter(waiters)
        waiters.notify([BOX])
        waiters.notify([BOX])
        assert not looks(second)

    run(scenario())


def test_a_client_with_messages_wakes_the_next() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        first, second, third = enter(waiters), enter(waiters), enter(waiters)
        waiters.notify([BOX])
        waiters.leave(first, may_be_more=True)
        assert [looks(second), looks(third)] == [True, False]

    run(scenario())


def test_a_client_without_messages_is_first_again() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        first, second = enter(waiters), enter(waiters)
        waiters.notify([BOX])
        waiters.return_turn(first)
        assert [looks(first), looks(second)] == [False, False]
        waiters.notify([BOX])
        assert [looks(first), looks(second)] == [True, False]

    run(scenario())


def test_a_notification_during_a_fetch_leads_to_another_fetch() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        first = enter(waiters)
        waiters.notify([BOX])
        waiters.notify([BOX])
        waiters.return_turn(first)
        assert looks(first)

    run(scenario())


def test_a_notification_after_an_empty_fetch_is_not_lost() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        began_at = now()
        waiters.notify([BOX])
        assert looks(waiters.enter(BOX, since=began_at))
        assert not looks(waiters.enter(OTHER, since=began_at))

    run(scenario())


def test_news_from_before_the_fetch_is_old() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        waiters.notify([BOX])
        assert not looks(enter(waiters))

    run(scenario())


def test_a_client_leaving_in_its_turn_passes_the_turn_on() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        first, second = enter(waiters), enter(waiters)
        waiters.notify([BOX])
        waiters.leave(first, may_be_more=True)
        assert looks(second)

    run(scenario())


def test_a_failed_fetch_wakes_nobody() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        first, second = enter(waiters), enter(waiters)
        waiters.notify([BOX])
        waiters.leave(first, may_be_more=False)
        assert not looks(second)
        waiters.notify([BOX])
        assert looks(second)

    run(scenario())


def test_a_client_leaving_the_queue_does_not_affect_others() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        first, second = enter(waiters), enter(waiters)
        waiters.leave(first, may_be_more=True)
        assert not looks(second)
        waiters.notify([BOX])
        assert looks(second)

    run(scenario())


def test_a_mailbox_without_clients_is_removed() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        first, second = enter(waiters), enter(waiters)
        assert list(waiters.mailboxes) == [BOX]
        waiters.notify([BOX])
        waiters.leave(first, may_be_more=True)
        waiters.leave(second, may_be_more=True)
        assert list(waiters.mailboxes) == []

    run(scenario())


def test_old_news_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        waiters = Waiters()
        began_at = now()
        monkeypatch.setattr("delivery.mailbox.waiters.FETCH_SECONDS", -1.0)
        waiters.notify(range(REMEMBERED + 1))
        assert not looks(waiters.enter(BOX, since=began_at))

    run(scenario())


def test_a_stop_ends_every_wait() -> None:
    async def scenario() -> None:
        waiters = Waiters()
        looking, waiting = enter(waiters), enter(waiters)
        waiters.notify([BOX])
        waiters.stop()
        late = enter(waiters)
        assert looks(looking)
        assert [(waiter.turn.done(), looks(waiter)) for waiter in (waiting, late)] == [
            (True, False)
        ] * 2
        waiters.return_turn(looking)
        assert (looking.turn.done(), looks(looking)) == (True, False)
        for waiter in (looking, waiting, late):
            waiters.leave(waiter, may_be_more=True)
        assert list(waiters.mailboxes) == []

    run(scenario())


@pytest.mark.parametrize(
    ("payload", "understood"), [("12,34", [12, 34]), ("7", [7]), ("", []), ("x,1,-2,", [1])]
)
def test_a_notification_names_mailboxes(payload: str, understood: list[int]) -> None:
    assert mailboxes_of_payload(payload) == understood
