"""Fixtures of calls."""

from collections.abc import Iterator

import pytest

from subscriptions.values.resolver import Resolver
from tests.support.receivers.name_server import name_server
from tests.unit.delivery.calls.ways import NAMES, Ways


@pytest.fixture
def ways() -> Iterator[Ways]:
    with name_server(NAMES) as names:
        yield Ways(Resolver(servers=[names.address]))
