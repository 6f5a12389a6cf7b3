"""An archived message is found by its id, with its deliveries and attempts from any files."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django import Settings

from delivery.support.replays.archive_lookup import find_message
from tests.unit.delivery.history.archived import AT, attempt, delivery, message, seconds, write

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def archive(settings: Settings, tmp_path: Path) -> Path:
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, history_url=str(tmp_path))
    return tmp_path


def test_a_message_is_as_it_was_published(archive: Path) -> None:
    write(
        archive, messages=[message(1), message(2, body=b"\x00", headers='{"a": "b"}'), message(3)]
    )
    found = find_message(2)
    assert found is not None
    assert (found.id, found.public_id, found.body, found.headers) == (
        2,
        "msg_2",
        b"\x00",
        {"a": "b"},
    )
    assert (found.published_at, found.event_type, found.publisher) == (
        seconds(2),
        "Test.Event",
        "test",
    )
    assert found.deliveries == ()


def test_deliveries_have_their_attempts_and_their_last_settlement(archive: Path) -> None:
    later = AT + timedelta(days=40)
    write(
        archive,
        messages=[message(1), message(2)],
        deliveries=[
            delivery(10, message_id=1, status="FAILED"),
            delivery(11, message_id=1),
            delivery(12, message_id=2),
        ],
        attempts=[
            attempt(10, message_id=1, outcome="SERVER_ERROR"),
            attempt(11, message_id=1),
            attempt(12, message_id=2),
        ],
    )
    # Resubmitted by a person weeks afterwards.
    write(
        archive,
        deliveries=[delivery(10, message_id=1, settled_at=later, attempts=2)],
        attempts=[attempt(10, 2, message_id=1, settled_at=later)],
    )
    found = find_message(1)
    assert found is not None
    reported = [
        (
            delivery_there.id,
            delivery_there.status,
            [each.outcome for each in delivery_there.attempts],
        )
        for delivery_there in found.deliveries
    ]
    assert reported == [
        (10, "DELIVERED", ["SERVER_ERROR", "SUCCESS"]),
        (11, "DELIVERED", ["SUCCESS"]),
    ]


def test_an_unarchived_message_is_not_found(archive: Path) -> None:
    assert find_message(1) is None
    write(archive, messages=[message(1), message(3)])
    assert find_message(2) is None
