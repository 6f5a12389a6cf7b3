"""The file of TeamForge's predefined event types can be applied, and its samples are plausible."""

from pathlib import Path
from typing import Any

import pytest

import delivery.vendors.teamforge
from delivery.configuration.document.document_json import parse_document
from subscriptions.models import EventType, Kind
from tests.unit.delivery.configuration.document.documents import apply, plan, reported

pytestmark = pytest.mark.django_db


def file() -> Any:
    (folder,) = delivery.vendors.teamforge.__path__
    return parse_document(Path(folder, "event_types.json").read_bytes())


def test_it_makes_seven_topics_and_their_presubmit_questions() -> None:
    apply(file())
    made = EventType.objects.filter(name__startswith="TeamForge.Artifact.")
    topics = {row.name for row in made if row.kind == Kind.TOPIC}
    assert len(topics) == 7
    assert {row.name for row in made if row.kind == Kind.SYNC} == {
        f"{name}.Presubmit" for name in topics
    }
    assert all((row.sample or {})["original"]["project"]["id"] == "proj1008" for row in made)


def test_applying_it_again_changes_nothing() -> None:
    apply(file())
    assert reported(plan(file())) == []
