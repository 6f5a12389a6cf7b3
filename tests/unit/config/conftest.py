"""Servers that several tests share."""

from collections.abc import Iterator

import pytest

from tests.unit.config.serving import Served, serving


@pytest.fixture(scope="module")
def echoing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Answers with what it was told of the request."""
    with serving("bridged_echo", tmp_path_factory.mktemp("echo")) as served:
        yield served


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Answers each path in a way of its own, see `applications.answers`."""
    with serving("bridged_answers", tmp_path_factory.mktemp("answers")) as served:
        yield served
