"""Fixtures for tests of ranges of messages."""

from collections.abc import Iterator

import pytest

from delivery.maintenance import retention
from delivery.models import Archived, MessageRange, RetentionRun
from tests.unit.delivery.maintenance.ranged import go_on_from, ids_put_back
from tests.unit.delivery.maintenance.retaining import past


@pytest.fixture
def archived_ranges(db: None) -> Iterator[None]:
    """The past is archived, and the next message begins a range; ids are restored afterwards."""
    Archived.objects.create(pk=1, until=past(0.5))
    with ids_put_back():
        go_on_from(MessageRange.objects.earliest("first_id").first_id + 1)
        yield


@pytest.fixture
def row_by_row(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids up to which a pass has gone row by row, wherever it removed rows."""
    went: list[int] = []
    remove = retention._remove_rows

    def noted(run: RetentionRun, *args: object, **kwargs: object) -> None:
        before = run.messages
        remove(run, *args, **kwargs)  # type: ignore[arg-type]
        if run.messages > before:
            went.append(run.position)

    monkeypatch.setattr(retention, "_remove_rows", noted)
    return went


@pytest.fixture
def gone_through(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids up to which a pass has looked up messages one by one."""
    went: list[int] = []
    remove = retention._remove_rows

    def noted(run: RetentionRun, *args: object, **kwargs: object) -> None:
        remove(run, *args, **kwargs)  # type: ignore[arg-type]
        went.append(run.position)

    monkeypatch.setattr(retention, "_remove_rows", noted)
    return went
