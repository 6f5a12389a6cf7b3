"""The tests of a field `colour` of subscriptions, which only a patched copy of the tree has.

`test_new_field.py` makes the copy and runs this file there.
"""

import json
from typing import Any

from django.test import Client

from delivery.configuration.document.export import export_configuration
from subscriptions.models import ConfigurationChange, Subscription
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, created, refused
from tests.unit.delivery.configuration.document.documents import (
    apply,
    document,
    faults,
    plan,
    reported,
)
from tests.unit.delivery.console.subscription_form import errors, form_values

LABEL, HELP = "Colour of the label", "A name such as green."
WRONG = "begin with a letter or digit"
PAGE = "/admin/subscriptions/subscription/"


def values(**fields: Any) -> dict[str, Any]:
    endpoint = "https://127.0.0.1/hook"
    return {"name": "s", "subscriber": "crm", "event_type": "Made", "endpoint": endpoint} | fields


def colours() -> list[Any]:
    return [getattr(row, "colour") for row in Subscription.objects.all()]  # noqa: B009


def ready() -> Caller:
    factories.event_type("Made")
    factories.subscriber("crm")
    return caller()


def test_the_form_shows_saves_and_checks_it(admin_client: Client) -> None:
    page = admin_client.get(f"{PAGE}add/").text
    assert LABEL in page
    assert HELP in page
    given = form_values(colour="-")
    assert WRONG in errors(admin_client.post(f"{PAGE}add/", given))["colour"][0]
    assert admin_client.post(f"{PAGE}add/", given | {"colour": "green"}).status_code == 302
    assert colours() == ["green"]


def test_rest_creates_reads_changes_checks_and_records_it(db: None) -> None:
    manager = ready()
    made = created(manager.post("subscriptions", values(colour="green")))
    address = f"subscriptions/{made['id']}"
    assert made["colour"] == manager.get(address).body["colour"] == "green"
    assert manager.patch(address, {"colour": "red"}).body["colour"] == "red"
    assert created(manager.post("subscriptions", values(name="t")))["colour"] == ""
    (error,) = refused(manager.patch(address, {"colour": "-"}), 400)["errors"]
    assert (error["field"], WRONG in error["detail"]) == ("colour", True)
    assert ConfigurationChange.objects.filter(after={"colour": "red"}).exists()


def test_openapi_describes_it(db: None) -> None:
    answer = Client().get("/api/schema/", headers={"accept": "application/vnd.oai.openapi+json"})
    schemas = json.loads(answer.content)["components"]["schemas"].values()
    fields = [schema.get("properties", {}).get("colour") for schema in schemas]
    described = [field for field in fields if field is not None]
    assert {(field["title"], field["description"]) for field in described} == {(LABEL, HELP)}
    # A name, or empty.
    assert {field["oneOf"][0]["maxLength"] for field in described} == {20}


def test_a_document_exports_checks_and_applies_it(db: None) -> None:
    ready()
    apply(document(subscriptions=[values(colour="green")]))
    assert colours() == ["green"]
    (exported,) = export_configuration(only=["subscriptions"])["subscriptions"]
    assert exported["colour"] == "green"
    changes = plan(document(subscriptions=[exported | {"colour": "red"}])).changes
    assert [field.name for change in changes for field in change.fields] == ["colour"]
    assert reported(plan(document(subscriptions=[values(colour="green")]))) == []
    (fault,) = faults(document(subscriptions=[values(colour="-")]))
    assert (fault.field, WRONG in fault.detail) == ("colour", True)
