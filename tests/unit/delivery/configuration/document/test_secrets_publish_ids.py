"""Publish ids that a document gives: taken over once, never shown, never exported."""

from typing import Any

import pytest
from django.utils import timezone

from delivery.configuration.document.document_json import document_text
from delivery.configuration.document.export import export_configuration
from subscriptions.models import ConfigurationChange, Publisher, PublishId
from subscriptions.publish_ids import MAX_VALID, end_publish_id, publisher_of_id, rotate_publish_id
from tests.support import factories
from tests.unit.delivery.configuration.document.documents import (
    apply,
    document,
    faults,
    plan,
    reported,
)

pytestmark = pytest.mark.django_db

TEXT, OTHER = "0c5a3a5e-7a17-4f5b-9a3e-6c8f2d1b4a99", "another-id-of-16-or-more"
GIVEN = {"env:ID": TEXT}


def publishers(*names: str) -> dict[str, Any]:
    return document(publishers=[{"name": name, "publish_id": {"from": "env:ID"}} for name in names])


def owner(text: str = TEXT) -> Publisher | None:
    return publisher_of_id(text, now=timezone.now())


def test_a_new_publisher_gets_its_id_and_a_plan_after_that_is_empty() -> None:
    (made,) = plan(publishers("jenkins"), secrets=GIVEN).changes
    assert [(field.name, field.shown_after) for field in made.fields] == [("publish_id", "•••")]
    apply(publishers("jenkins"), secrets=GIVEN)
    assert owner() == Publisher.objects.get(name="jenkins")
    assert plan(publishers("jenkins"), secrets=GIVEN).changes == []
    (entry,) = ConfigurationChange.objects.all()
    assert entry.after is not None
    assert entry.after["publish_id"] == "•••, new value"
    assert TEXT not in str(entry.after) + document_text(export_configuration())


def test_another_id_rotates() -> None:
    apply(publishers("jenkins"), secrets=GIVEN)
    second = {"env:ID": OTHER}
    assert reported(plan(publishers("jenkins"), secrets=second)) == ["change publisher jenkins"]
    apply(publishers("jenkins"), secrets=second)
    assert owner() == owner(OTHER) == Publisher.objects.get()
    assert PublishId.objects.filter(expires_at=None).count() == 1


def test_without_a_value_the_ids_stay() -> None:
    apply(publishers("jenkins"), secrets=GIVEN)
    planned = plan(publishers("jenkins"))
    assert (planned.changes, planned.kept) == ([], [("publisher jenkins", "publish_id", "env:ID")])
    (fault,) = faults(publishers("new"))
    assert (fault.object, fault.field) == ("publisher new", "publish_id")
    assert "There is no value for env:ID" in fault.detail


@pytest.mark.parametrize(
    ("given", "detail"),
    [(TEXT, "does not stand in the file"), ({"from": "ID"}, "write {"), (7, "does not stand")],
)
def test_an_id_in_the_file_is_refused(given: Any, detail: str) -> None:
    (fault,) = faults(document(publishers=[{"name": "jenkins", "publish_id": given}]))
    assert fault.field == "publish_id"
    assert detail in fault.detail


def test_an_id_that_can_be_guessed_is_refused() -> None:
    (fault,) = faults(publishers("jenkins"), secrets={"env:ID": "1f0c"})
    assert "16 to 200" in fault.detail


def test_two_publishers_never_have_one_id() -> None:
    (fault,) = faults(publishers("a", "b"), secrets=GIVEN)
    assert (fault.object, "by a" in fault.detail) == ("publisher b", True)
    rotate_publish_id(factories.publisher("taken"), text=TEXT, now=timezone.now())
    (fault,) = faults(publishers("a"), secrets=GIVEN)
    assert "by taken" in fault.detail


def test_an_id_that_was_ended_is_refused() -> None:
    made, _ = rotate_publish_id(factories.publisher("jenkins"), text=TEXT, now=timezone.now())
    end_publish_id(made, now=timezone.now())
    (fault,) = faults(publishers("jenkins"), secrets=GIVEN)
    assert "in use, or was" in fault.detail


def test_the_number_of_valid_ids_is_limited() -> None:
    jenkins = factories.publisher("jenkins")
    for _ in range(MAX_VALID):
        rotate_publish_id(jenkins, now=timezone.now())
    (fault,) = faults(publishers("jenkins"), secrets=GIVEN)
    assert "End one first" in fault.detail
