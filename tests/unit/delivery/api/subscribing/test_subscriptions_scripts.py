"""Scripts of subscriptions by REST: refusals, with the place in the script."""

from typing import Any

import pytest

from subscriptions.models import Kind, Subscription
from tests.support import factories
from tests.unit.delivery.api.client import Caller, Json, created, fields_of, refused

SCRIPT = "$outmessage = {key: $inmessage.id};\n"


def valid(event_type: str = "Order.Created", **fields: Any) -> Json:
    named = {"name": "orders", "subscriber": "crm", "event_type": event_type}
    return named | {"endpoint": "https://127.0.0.1/hook"} | fields


@pytest.fixture
def configured(manager: Caller) -> Caller:
    factories.event_type("Order.Created")
    factories.event_type("Order.Presubmit", kind=Kind.SYNC)
    factories.event_type("Order.Job", kind=Kind.QUEUE)
    factories.subscriber("crm")
    return manager


def test_a_script_is_stored_as_typed_and_its_versions_are_counted(configured: Caller) -> None:
    made = created(configured.post("subscriptions", valid(script=SCRIPT)))
    assert made["script"] == SCRIPT
    row = Subscription.objects.get()
    assert row.script_version == 1
    address = f"subscriptions/{made['id']}"
    for change, version in (
        ({"script": SCRIPT}, 1),
        ({"timeout_seconds": 7}, 1),
        ({"script": "1;"}, 2),
        ({"script": ""}, 3),
    ):
        assert configured.patch(address, change).status == 200
        row.refresh_from_db()
        assert row.script_version == version


def test_without_a_script_the_version_is_0(configured: Caller) -> None:
    created(configured.post("subscriptions", valid()))
    assert Subscription.objects.get().script_version == 0


def test_a_wrong_script_is_refused_with_line_and_column(configured: Caller) -> None:
    problem = refused(configured.post("subscriptions", valid(script="var a = 1;\n  var = 2;")), 400)
    (error,) = problem["errors"]
    assert (error["field"], error["line"], error["column"]) == ("script", 2, 7)
    assert "SyntaxError" in error["detail"]


def test_a_script_that_is_too_long_is_refused(configured: Caller) -> None:
    problem = refused(configured.post("subscriptions", valid(script="//" + "é" * 50_000)), 400)
    assert "100000 bytes" in problem["errors"][0]["detail"]


def test_a_response_script_needs_the_endpoint_webr(configured: Caller) -> None:
    answering = valid("Order.Presubmit", endpoint="webr://", script="$statuscode = 400;")
    made = created(configured.post("subscriptions", answering))
    assert (made["endpoint"], made["script"]) == ("webr://", "$statuscode = 400;")
    assert fields_of(
        refused(configured.patch(f"subscriptions/{made['id']}", {"script": ""}), 400)
    ) == {"script"}
    changed = {"script": "", "endpoint": "https://127.0.0.1/hook"}
    assert configured.patch(f"subscriptions/{made['id']}", changed).status == 200
