"""The demo's slow reader: what it says when it cannot read its mailbox."""

import logging
from pathlib import Path

import pytest

from delivery.demo import slow_reader
from delivery.demo.cast import READER
from tests.support import factories
from tests.support.receivers import Receiver

pytestmark = pytest.mark.django_db


@pytest.fixture
def remembered(tmp_path: Path) -> Path:
    return tmp_path / "demo-fetch-key"


def test_before_the_demo_is_provisioned_there_is_nothing_to_tell(
    remembered: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    slow_reader.read_while_possible(remembered, "http://127.0.0.1:9")
    assert caplog.records == []


def test_a_server_that_is_away_is_told(
    remembered: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    factories.subscriber(READER)
    receiver.refuse_connections()
    slow_reader.read_while_possible(remembered, f"http://127.0.0.1:{receiver.port}")
    assert [record.message for record in caplog.records] == ["the demo's mailbox is not read for a while"]
