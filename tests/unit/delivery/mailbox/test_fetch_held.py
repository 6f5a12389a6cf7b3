"""A mailbox that is HELD, by its subscription, its subscriber or with all sending."""

import pytest

from delivery.database.queries import rows
from delivery.states import Status
from delivery.support import held_objects, toggle
from delivery.support.held_objects import Held
from tests.unit.delivery.mailbox.box import FilledMailbox, status_of


def owner(level: str, mailbox: FilledMailbox) -> Held:
    owners: dict[str, Held] = {
        "subscription": mailbox.subscription,
        "subscriber": mailbox.subscriber,
        "installation": held_objects.installation(),
    }
    return owners[level]


def has_news(mailbox: FilledMailbox) -> bool:
    return bool(rows("mailboxes_with_messages", {"subscribers": [mailbox.subscriber.pk]}))


@pytest.mark.parametrize("level", ["subscription", "subscriber", "installation"])
def test_it_answers_204_and_takes_acknowledgements(level: str, mailbox: FilledMailbox) -> None:
    first, second = mailbox.put(2)
    message = mailbox.one()
    held = owner(level, mailbox)
    toggle.hold_owner(held, actor="ann")
    assert mailbox.ask("next").status == 204
    assert not has_news(mailbox)
    assert mailbox.say("ack", message)
    assert [status_of(row) for row in (first, second)] == [Status.DELIVERED, Status.PENDING]
    assert mailbox.status()["available"] == 0
    toggle.activate_owner(held, actor="ann")
    assert has_news(mailbox)
    assert len(mailbox.next(10)) == 1
