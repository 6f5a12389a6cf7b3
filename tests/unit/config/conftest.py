"""Servers that several tests share."""

from collections.abc import Iterator

import pytest

from tests.unit.config.serving import Served, serving


@pytest.fixture(scope="module")
def echoing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that answers with its description of the request."""
    with serving("bridged_echo", tmp_path_factory.mktemp("echo")) as served:
        yield served


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that answers each path in a different way, see `applications.answers`."""
    with serving("bridged_answers", tmp_path_factory.mktemp("answers")) as served:
        yield served
