"""Web servers with waiting clients are notified of a mailbox that has messages again."""

from collections.abc import Callable

import psycopg
import pytest

from delivery.database.connections import MAILBOX_CHANNEL, connection_parameters
from delivery.lifecycle import transitions
from delivery.models import Delivery, Status
from delivery.support import resubmit, toggle
from delivery.support.resubmit import Edit
from tests.unit.delivery.mailbox.box import FilledMailbox, box

EDIT = Edit(headers={}, content_type="text/plain", body=b"x")

pytestmark = pytest.mark.django_db(transaction=True)


def release(mailbox: FilledMailbox) -> None:
    mailbox.say("release", mailbox.one())


def send_again(mailbox: FilledMailbox) -> None:
    transitions.cancel_deliveries([Delivery.objects.get().pk], actor="ann")
    resubmit.resubmit_delivery(Delivery.objects.get().pk, actor="ann")


def send_edited(mailbox: FilledMailbox) -> None:
    transitions.cancel_deliveries([Delivery.objects.get().pk], actor="ann")
    resubmit.resubmit_edited(Delivery.objects.get(), EDIT, actor="ann")


def activate(mailbox: FilledMailbox) -> None:
    toggle.deactivate_owner(mailbox.subscription, actor="ann")
    toggle.activate_owner(mailbox.subscription, backlog="deliver", actor="ann")


@pytest.mark.parametrize("act", [release, send_again, send_edited, activate])
def test_messages_available_again_are_announced(
    transactional_db: None, act: Callable[[FilledMailbox], None]
) -> None:
    mailbox = box()
    mailbox.put()
    with psycopg.connect(**connection_parameters(), autocommit=True) as listening:
        listening.execute(f"LISTEN {MAILBOX_CHANNEL}")
        act(mailbox)
        reported = next(listening.notifies(timeout=20))
    assert reported.payload == str(mailbox.subscriber.pk)
    assert Delivery.objects.filter(status=Status.PENDING).exists()
