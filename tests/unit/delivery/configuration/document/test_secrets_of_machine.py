"""A command reads only variables with the prefix and files below the folder."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from config.env import read_environment
from delivery.configuration.document.document import RefusedDocumentError
from delivery.configuration.document.plan import Plan
from delivery.configuration.document.secrets import ReferenceRefusedError, secret_of_machine
from delivery.configuration.document.warnings import plan_warnings
from subscriptions.models import Subscription
from tests.support import factories
from tests.unit.delivery.configuration.document.documents import document


@pytest.fixture
def folder(tmp_path: Path, settings: Settings) -> Path:
    made = tmp_path / "secrets"
    made.mkdir()
    (made / "abc").write_text("value\n")
    (tmp_path / "outside").write_text("of the home")
    settings.ENVIRONMENT = replace(
        settings.ENVIRONMENT, references=replace(settings.ENVIRONMENT.references, folder=made)
    )
    return made


def test_a_file_below_the_folder_is_read(folder: Path) -> None:
    (folder / "link").symlink_to("abc")
    for name in ("abc", f"{folder}/abc", "./abc", "link"):
        assert secret_of_machine(f"file:{name}") == "value"
    assert secret_of_machine("file:missing") is None
    assert secret_of_machine("file:.") is None


def test_no_other_file_is_read_whatever_its_path(folder: Path) -> None:
    (folder / "away").symlink_to("../outside")
    (folder / "up").symlink_to("..")
    for name in ("../outside", f"{folder.parent}/outside", "away", "up/outside", "/etc/passwd"):
        with pytest.raises(ReferenceRefusedError, match="outside of"):
            secret_of_machine(f"file:{name}")


def test_neither_a_device_nor_a_pipe_nor_a_large_file_is_read(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "large").write_bytes(b"x" * (64 * 1024 + 1))
    for name in ("pipe", "large", "bad\0name", "abc/below"):
        assert secret_of_machine(f"file:{name}") is None


def test_without_the_setting_no_file_is_read() -> None:
    with pytest.raises(ReferenceRefusedError, match="INTURN_REFERENCE_FOLDER"):
        secret_of_machine("file:/etc/hostname")


def test_a_variable_needs_the_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFIGURATION_SECRET_ABC", "value")
    monkeypatch.setenv("INTURN_BOOTSTRAP_KEY", "key")
    assert secret_of_machine("env:ABC") == "value"
    assert secret_of_machine("env:CONFIGURATION_SECRET_ABC") == "value"
    assert secret_of_machine("env:NOT_SET") is None
    for name in ("INTURN_BOOTSTRAP_KEY", "PATH"):
        with pytest.raises(ReferenceRefusedError, match=f"{name} itself is not read"):
            secret_of_machine(f"env:{name}")


@pytest.mark.django_db
def test_a_refused_reference_is_a_fault_of_its_field(folder: Path) -> None:
    from delivery.configuration.applying import checked_document, plan_document

    row = factories.subscription("orders", subscriber=factories.subscriber("crm"))
    entry = {
        "subscriber": "crm",
        "name": "orders",
        "event_type": str(row.event_type),
        "endpoint": row.endpoint,
        "headers": {"X-Key": {"from": "file:/etc/passwd"}},
    }
    with pytest.raises(RefusedDocumentError) as refused:
        plan_document(
            checked_document(document(subscriptions=[entry]), lookup=secret_of_machine, prune=False)
        )
    (fault,) = refused.value.faults
    assert fault.field == "headers.X-Key"
    assert "INTURN_REFERENCE_FOLDER" in fault.detail


@pytest.mark.django_db
class TestWithoutTheFolder:
    """A document with files plans as one with variables that have no value."""

    def entry(self, **headers: str) -> dict[str, Any]:
        return {
            "subscriber": "crm",
            "name": "orders",
            "event_type": "Made",
            "headers": {name: {"from": reference} for name, reference in headers.items()},
        }

    @pytest.fixture(autouse=True)
    def row(self) -> Subscription:
        return factories.subscription(
            "orders",
            subscriber=factories.subscriber("crm", headers={"A": "stored"}),
            event_type=factories.event_type("Made"),
            headers={"Key": "stored"},
        )

    def planned(self, content: dict[str, Any]) -> Plan:
        from delivery.configuration.applying import checked_document, plan_document

        checked = checked_document(content, lookup=secret_of_machine, prune=False)
        return plan_document(checked)

    def test_a_stored_secret_stays_and_the_plan_warns(self) -> None:
        subscriber = {"name": "crm", "headers": {"A": {"from": "file:b"}}}
        content = document(subscriptions=[self.entry(Key="file:a")], subscribers=[subscriber])
        plan = self.planned(content)
        assert (plan.changes, [reference for *_, reference in plan.kept]) == (
            [],
            ["file:b", "file:a"],
        )
        (warning,) = plan_warnings(plan)
        assert "file:b, file:a" in warning
        assert "INTURN_REFERENCE_FOLDER" in warning

    def test_where_none_is_stored_it_is_refused(self) -> None:
        with pytest.raises(RefusedDocumentError) as refused:
            self.planned(document(subscriptions=[self.entry(Key="file:a", Other="file:b")]))
        (fault,) = refused.value.faults
        assert fault.field == "headers.Other"
        assert "INTURN_REFERENCE_FOLDER" in fault.detail

    def test_no_kept_secret_goes_to_another_server(self) -> None:
        entry = self.entry(Key="file:a") | {"endpoint": "https://127.0.0.9/"}
        with pytest.raises(RefusedDocumentError, match="changes its server"):
            self.planned(document(subscriptions=[entry]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("INTURN_REFERENCE_FOLDER", "secrets"),
        ("INTURN_REFERENCE_PREFIX", "INTURN_SECRET_"),
        ("INTURN_REFERENCE_PREFIX", "P"),
        ("INTURN_REFERENCE_PREFIX", "DATABASE_"),
        ("INTURN_REFERENCE_PREFIX", "CONFIGURATION"),
    ],
)
def test_a_setting_that_would_open_more_is_refused(name: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=name):
        read_environment({"INTURN_HOME": str(tmp_path), name: value})
