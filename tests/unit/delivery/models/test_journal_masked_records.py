"""Records of before the masks lose the secrets of their addresses when migrations run."""

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.utils import timezone

from delivery.models import Incident, IncidentKind, JournalEntry, JournalKind
from subscriptions.models import ConfigurationChange

URL = "https://receiver.example/hook/Pa7hS3cr3tPartOfTheUrl?token=SECRET"
MASKED = "https://receiver.example/hook/•••?•••"
pytestmark = pytest.mark.django_db


def run(module: str, function: str) -> None:
    migrate: Any = getattr(import_module(module), function)
    with connection.schema_editor() as editor:
        migrate(apps, editor)


def test_the_configuration_log(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "subscriptions.migrations.0010_masked_log"
    monkeypatch.setattr(import_module(module), "BATCH", 2)
    for number in range(5):
        ConfigurationChange.objects.create(
            actor="ann",
            action="changed",
            before={"endpoint": f"PATCH:{URL}{number}", "name": "a"},
            after={"endpoint": "", "probe_url": URL, "chat_urls": [URL]} if number else None,
        )
    run(module, "mask_log")
    rows: list[Any] = list(
        ConfigurationChange.objects.order_by("id").values_list("before", "after")
    )
    assert "SECRET" not in str(rows).replace("•••CRET", "")
    assert rows[0][1] is None
    before, after = rows[1]
    assert before["endpoint"].startswith(f"PATCH:{MASKED} (")
    assert before["name"] == "a"
    assert after["chat_urls"][0].startswith("receiver.example •••CRET")
    assert len({before["endpoint"] for before, _ in rows}) == 5
    run(module, "mask_log")
    assert list(ConfigurationChange.objects.order_by("id").values_list("before", "after")) == rows


def test_the_journal_and_incidents(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "delivery.migrations.0011_masked_journal"
    monkeypatch.setattr(import_module(module), "BATCH", 2)
    for text in (f"{URL} is disabled: 9 of 9", "nothing", f"{URL} was FROZEN and is released."):
        JournalEntry.objects.create(kind=JournalKind.DISABLED, text=text)
    Incident.objects.create(
        key="URL x", kind=IncidentKind.URL, url=URL, subject=URL, first_at=timezone.now()
    )
    run(module, "mask_texts")
    assert list(JournalEntry.objects.order_by("id").values_list("text", flat=True)) == [
        f"{MASKED} is disabled: 9 of 9",
        "nothing",
        f"{MASKED} was FROZEN and is released.",
    ]
    assert Incident.objects.get().subject == MASKED
