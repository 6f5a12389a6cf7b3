"""Fixtures of the mailbox tests."""

import pytest

from tests.unit.delivery.api.client import Caller, caller
from tests.unit.delivery.mailbox.box import FilledMailbox, box


@pytest.fixture
def mailbox(db: None) -> FilledMailbox:
    """An empty mailbox with one subscription."""
    return box()


@pytest.fixture
def manager(db: None) -> Caller:
    """A caller who may resubmit."""
    return caller()
