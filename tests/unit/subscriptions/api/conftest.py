"""Fixtures for tests of the configuration's API."""

import pytest

from tests.unit.subscriptions.api.client import Caller, caller


@pytest.fixture
def manager(db: None) -> Caller:
    """A caller who may configure everything."""
    return caller()
