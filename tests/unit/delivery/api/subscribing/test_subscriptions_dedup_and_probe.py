"""The dedup path and the probe URL of a subscription are checked before they are saved."""

from typing import Any

import pytest

from subscriptions.models import Kind
from tests.support import factories
from tests.unit.delivery.api.client import Caller, Json, created, fields_of, refused

PATH = "$$->'Body'->>'id'"


def valid(**fields: Any) -> Json:
    return {
        "name": "orders",
        "subscriber": "crm",
        "event_type": "Order.Created",
        "endpoint": "https://127.0.0.1/hook",
    } | fields


@pytest.fixture
def configured(manager: Caller) -> Caller:
    factories.event_type("Order.Created")
    factories.event_type("Order.Work", kind=Kind.QUEUE)
    factories.event_type("Order.Asked", kind=Kind.SYNC)
    factories.event_type("Inturn.Callback")
    factories.subscriber("crm")
    return manager


class TestDedup:
    def test_the_default_is_no_deduplication(self, configured: Caller) -> None:
        made = created(configured.post("subscriptions", valid()))
        assert (made["dedup_mode"], made["dedup_path"], made["dedup_window_seconds"]) == (
            "NONE",
            "",
            259_200,
        )

    @pytest.mark.parametrize(
        "asked", [{"dedup_mode": "KEY"}, {"dedup_mode": "PATH", "dedup_path": PATH}]
    )
    def test_deduplication_is_by_key_or_by_path(self, configured: Caller, asked: Json) -> None:
        made = created(configured.post("subscriptions", valid(dedup_window_seconds=60, **asked)))
        read = configured.get(f"subscriptions/{made['id']}").body
        assert {name: read[name] for name in asked} == asked
        assert read["dedup_window_seconds"] == 60

    @pytest.mark.parametrize(
        ("path", "line", "column"),
        [
            ("$$->'Body'->", 1, 13),
            ("$$->'Body'\n  ->'id' = 1", 1, 1),
            ("$$->'Body'\n  ->> id", 2, 7),
            ("'id'", 1, 1),
            ("$$", 1, 1),
        ],
    )
    def test_a_wrong_path_is_refused_with_line_and_column(
        self, configured: Caller, path: str, line: int, column: int
    ) -> None:
        problem = refused(
            configured.post("subscriptions", valid(dedup_mode="PATH", dedup_path=path)), 400
        )
        (error,) = problem["errors"]
        assert (error["field"], error["line"], error["column"]) == ("dedup_path", line, column)
        assert "a path is wanted" in error["detail"]

    def test_deduplication_can_be_changed_and_the_path_is_removed_with_its_mode(
        self, configured: Caller
    ) -> None:
        made = created(configured.post("subscriptions", valid(dedup_mode="PATH", dedup_path=PATH)))
        path = f"subscriptions/{made['id']}"
        assert configured.patch(path, {"dedup_window_seconds": 5}).status == 200
        assert fields_of(refused(configured.patch(path, {"dedup_path": ""}), 400)) == {"dedup_path"}
        changed = configured.patch(path, {"dedup_mode": "KEY"})
        assert changed.status == 200, changed
        assert (changed.body["dedup_mode"], changed.body["dedup_path"]) == ("KEY", "")
        assert fields_of(refused(configured.patch(path, {"dedup_path": PATH}), 400)) == {
            "dedup_path"
        }


class TestProbe:
    def test_a_probe_url_is_stored_unchanged(self, configured: Caller) -> None:
        made = created(
            configured.post("subscriptions", valid(probe_url="http://127.0.0.1:81/up?ä"))
        )
        assert made["probe_url"] == "http://127.0.0.1:81/up?%C3%A4"
        changed = configured.patch(f"subscriptions/{made['id']}", {"probe_url": ""})
        assert changed.body["probe_url"] == ""
