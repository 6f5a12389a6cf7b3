"""The demo's slow reader: its message when it cannot read its mailbox."""

import logging
from pathlib import Path

import pytest

from delivery.management.demo import slow_reader
from delivery.management.demo.cast import READER
from tests.support import factories
from tests.support.receivers import Receiver

pytestmark = pytest.mark.django_db


@pytest.fixture
def remembered(tmp_path: Path) -> Path:
    return tmp_path / "demo-fetch-key"


def test_without_a_provisioned_demo_no_error_is_reported(
    remembered: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    slow_reader.read_while_possible(remembered, "http://127.0.0.1:9")
    assert caplog.records == []


def test_an_unreachable_server_is_reported(
    remembered: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    factories.subscriber(READER)
    receiver.refuse_connections()
    slow_reader.read_while_possible(remembered, f"http://127.0.0.1:{receiver.port}")
    assert [record.message for record in caplog.records] == [
        "the demo's mailbox is not read for a while"
    ]
