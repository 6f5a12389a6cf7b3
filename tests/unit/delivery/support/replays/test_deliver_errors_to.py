"""A failure of an archived message goes to the recipient that its publisher named."""

from dataclasses import replace
from pathlib import Path

import pytest
from pytest_django import Settings

from delivery.models import JournalEntry, Message
from subscriptions.models import Mode, Publisher
from tests.support import factories
from tests.unit.delivery.api.client import caller
from tests.unit.delivery.mailbox.box import FilledMailbox, box
from tests.unit.delivery.publishing.test_failures import event_type, listening, report
from tests.unit.delivery.support.replays.ready_replay import archived, finish, running

pytestmark = pytest.mark.django_db

ID = 901
NAMED = '{"errorsto": "ops"}'


@pytest.fixture(autouse=True)
def archive(settings: Settings, tmp_path: Path) -> Path:
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, history_url=str(tmp_path))
    return tmp_path


@pytest.fixture
def mailbox() -> FilledMailbox:
    """The mailbox whose client refuses what it gets; `ops` and `everybody` want failures."""
    for name in ("ops", "everybody"):
        listening(subscriber=factories.subscriber(name), name=name, mode=Mode.PULL)
    return box()


def refuse(mailbox: FilledMailbox) -> list[str]:
    """Refuse the next message, and return the subscribers that are notified of it."""
    known = set(Message.objects.filter(event_type=event_type()).values_list("id", flat=True))
    assert mailbox.say("reject", mailbox.one())
    assert report() == 1
    reports = Message.objects.filter(event_type=event_type()).exclude(pk__in=known)
    return sorted(
        delivery.subscription.subscriber.name
        for message in reports
        for delivery in message.deliveries.select_related("subscription__subscriber")
    )


def restore(mailbox: FilledMailbox, archive: Path, headers: str) -> None:
    """Replay a message that is only in the archive to the mailbox."""
    archived(archive, mailbox.subscription.event_type, [ID], headers=headers)
    assert finish(running(mailbox.subscription, [ID])).made == 1


@pytest.mark.parametrize(
    ("headers", "notified"),
    [(NAMED, ["ops"]), ('{"errorsto": "-"}', []), ("{}", ["everybody", "ops"])],
)
def test_its_replay_fails_and_the_named_recipient_alone_is_notified(
    mailbox: FilledMailbox, archive: Path, headers: str, notified: list[str]
) -> None:
    restore(mailbox, archive, headers)
    assert refuse(mailbox) == notified


def test_its_publishers_default_counts_unless_it_names_another(
    mailbox: FilledMailbox, archive: Path
) -> None:
    restore(mailbox, archive, "{}")
    Publisher.objects.update(errors_to="ops")
    assert refuse(mailbox) == ["ops"]


def test_a_resubmission_and_an_edited_copy_of_it_keep_the_recipient(
    mailbox: FilledMailbox, archive: Path
) -> None:
    restore(mailbox, archive, NAMED)
    assert refuse(mailbox) == ["ops"]
    manager = caller()
    (restored,) = Message.objects.get(pk=ID).deliveries.all()
    assert manager.post(f"deliveries/{restored.pk}/resubmit").status == 200
    assert refuse(mailbox) == ["ops"]
    edited = manager.post(f"deliveries/{restored.pk}/resubmit", {"body": {"mended": True}})
    assert edited.status == 202, edited
    assert refuse(mailbox) == ["ops"]


def test_a_recipient_that_is_gone_is_in_the_journal_and_all_are_notified(
    mailbox: FilledMailbox, archive: Path
) -> None:
    restore(mailbox, archive, '{"errorsto": "left"}')
    assert refuse(mailbox) == ["everybody", "ops"]
    assert JournalEntry.objects.get(kind="ERRORS_TO").message_id == ID
