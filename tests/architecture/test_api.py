"""The API stays compatible with that of the last release: see `api_snapshot.py`."""

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

from config.env import CHECKOUT
from config.version import version
from tests.architecture.api_compatibility import Documents
from tests.architecture.api_snapshot import ADVICE, current_document, stored_document

Document = dict[str, Any]


def schema(document: Document, name: str) -> Document:
    found: Document = document["components"]["schemas"][name]
    return found


def operation(document: Document, method: str, path: str) -> Document:
    found: Document = document["paths"][path][method]
    return found


def test_clients_of_the_last_release_still_work() -> None:
    """Before the first release there are no clients, and no snapshot."""
    stored = stored_document() or current_document()
    found = list(Documents(stored, current_document()).breaks())
    assert not found, "\n".join([*found, ADVICE])


def test_each_release_has_its_snapshot() -> None:
    changes = (CHECKOUT / ".project/CHANGES.md").read_text()
    advice = "run `python -m tests.architecture.api_snapshot` when you raise the version"
    stored = stored_document()
    if stored is None:
        headings = re.findall("^## (.*)$", changes, re.MULTILINE)
        assert headings == [f"{version()} (not released)"], advice
    else:
        assert stored["info"]["version"] == version(), advice


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (lambda new: new["paths"].pop("/api/v1/lanes"), "GET /api/v1/lanes: the operation is gone"),
        (
            lambda new: operation(new, "get", "/api/v1/event-types")["parameters"].clear(),
            "GET /api/v1/event-types query limit: the parameter is gone",
        ),
        (
            lambda new: operation(new, "get", "/api/v1/event-types")["parameters"][0].update(
                required=True
            ),
            "GET /api/v1/event-types query after: the parameter became required",
        ),
        (
            lambda new: schema(new, "EventType")["properties"].pop("ttl_seconds"),
            "GET /api/v1/event-types 200 results[] ttl_seconds: the field is gone",
        ),
        (
            lambda new: schema(new, "EventType")["properties"]["name"].update(nullable=True),
            "GET /api/v1/event-types/{name} 200 name: it may be null now",
        ),
        (
            lambda new: schema(new, "EventTypeRequest")["required"].append("description"),
            "POST /api/v1/event-types request description: the field became required",
        ),
        (
            lambda new: schema(new, "EventTypeRequest")["properties"]["name"].update(maxLength=10),
            "POST /api/v1/event-types request name: maxLength fell to 10",
        ),
        (
            lambda new: schema(new, "EventTypeKindEnum")["enum"].remove("SYNC"),
            "POST /api/v1/event-types request kind: 'SYNC' is refused now",
        ),
        (
            lambda new: schema(new, "EventType")["properties"]["name"].update(type="integer"),
            "POST /api/v1/event-types 201 name: string became integer",
        ),
        (
            lambda new: operation(new, "post", "/api/v1/event-types")["responses"].pop("201"),
            "POST /api/v1/event-types: the answer 201 is gone",
        ),
    ],
)
def test_a_change_that_breaks_clients_is_found(
    change: Callable[[Document], Any], reported: str
) -> None:
    old = current_document()
    new = copy.deepcopy(old)
    change(new)
    assert reported in list(Documents(old, new).breaks())


def test_additions_break_no_client() -> None:
    old = current_document()
    new = copy.deepcopy(old)
    new["paths"]["/api/v1/more"] = new["paths"]["/api/v1/lanes"]
    schema(new, "EventType")["properties"]["more"] = {"type": "string"}
    schema(new, "EventTypeRequest")["properties"]["more"] = {"type": "string"}
    schema(new, "EventTypeKindEnum")["enum"].append("MORE")
    assert list(Documents(old, new).breaks()) == []
