"""Duplicates in a mailbox are not handed out."""

import pytest

from delivery.models import Delivery, Status
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from subscriptions.models import DedupMode, Publisher
from tests.support import factories
from tests.unit.delivery.api.client import Caller
from tests.unit.delivery.mailbox.box import FilledMailbox, box


@pytest.fixture
def mailbox(db: None) -> FilledMailbox:
    return box(dedup_mode=DedupMode.PATH, dedup_path="$$->'Body'->>'id'")


@pytest.fixture
def publisher(db: None) -> Publisher:
    return factories.publisher()


def publish_one(publisher: Publisher, mailbox: FilledMailbox) -> Delivery:
    draft = Draft(event_type=mailbox.subscription.event_type, headers={}, body=b'{"id": "o-1"}')
    publish(publisher, [draft])
    newest = Delivery.objects.order_by("-id").first()
    assert newest is not None
    return newest


@pytest.mark.parametrize(
    ("said", "becomes"),
    [(None, "IN_DOUBT"), ("release", "IN_DOUBT"), ("ack", "DUPLICATE"), ("reject", "PENDING")],
)
def test_a_second_message_follows_the_outcome_of_the_first(
    mailbox: FilledMailbox, publisher: Publisher, said: str | None, becomes: str
) -> None:
    publish_one(publisher, mailbox)
    message = mailbox.one()
    if said:
        assert mailbox.say(said, message)
    assert publish_one(publisher, mailbox).status == becomes


def test_a_message_in_doubt_is_handed_out_when_a_person_decides_so(
    mailbox: FilledMailbox, publisher: Publisher, manager: Caller
) -> None:
    publish_one(publisher, mailbox)
    mailbox.one()
    second = publish_one(publisher, mailbox)
    assert mailbox.next() == []
    assert manager.post(f"deliveries/{second.pk}/resubmit").status == 200
    assert mailbox.one()["id"] == second.message.public_id
    assert Delivery.objects.get(pk=second.pk).status == Status.IN_FLIGHT
