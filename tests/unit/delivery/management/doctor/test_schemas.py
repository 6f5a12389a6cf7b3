"""`doctor` names the event types whose stored JSON Schema is refused."""

import pytest

from delivery.management.doctor.findings import Severity
from delivery.management.doctor.schemas import check_schemas
from tests.support import factories

pytestmark = pytest.mark.django_db


def test_all_is_well() -> None:
    factories.event_type()
    factories.event_type(json_schema={"pattern": "^a"})
    (finding,) = check_schemas()
    assert (finding.severity, finding.text) == (Severity.OK, "no stored JSON Schema is refused")


def test_each_event_type_with_a_refused_schema_is_named() -> None:
    factories.event_type("Test.B", json_schema={"properties": {"a": {"pattern": r"(a)\1"}}})
    factories.event_type("Test.A", json_schema={"$ref": "#/$defs/none"})
    factories.event_type("Test.C", json_schema={"pattern": "^a"})
    first, second = check_schemas()
    assert {first.severity, second.severity} == {Severity.FAILED}
    assert first.text == "Test.A: #: #/$defs/none leads nowhere."
    assert second.text == (
        r"Test.B: #/properties/a: the pattern '(a)\\1': look-around and back-references are not "
        "supported; write it without them."
    )
