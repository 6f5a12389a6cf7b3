"""Workfront's list of event subscriptions, and the subscriptions made of it."""

import json
from typing import Any

import pytest

from delivery.management.importing.import_result import Imported, SourceError
from delivery.management.importing.workfront import import_workfront
from delivery.vendors.workfront.encoding import BASE64_SCRIPT
from subscriptions.models import Subscription
from tests.unit.delivery.configuration.document.documents import apply, plan

FIRST: dict[str, Any] = {
    "id": "750a636c-5628-48f5-ba26-26b7ce537ac2",
    "customerId": "504f9640000013401be513579fbebffa",
    "objId": None,
    "objCode": "PROJ",
    "url": "https://8.8.8.8/hook",
    "eventType": "UPDATE",
    "authToken": "************************cks1",
    "filters": [
        {"fieldName": "status", "fieldValue": "CUR", "comparison": "eq", "state": "newState"}
    ],
    "filterConnector": "AND",
    "base64Encoding": False,
    "version": "v2",
    "subscription_url": {
        "url": "https://8.8.8.8/hook",
        "successes": 7,
        "failures": 0,
        "frozen_at": None,
    },
}
TOKEN = "WORKFRONT_8_8_8_8_WORKFRONT_{}_TOKEN"
FIRST_TOKEN = TOKEN.format("750A636C_5628_48F5_BA26_26B7CE537AC2")


def imported(*given: Any, **meta: Any) -> Imported:
    return import_workfront(json.dumps({"subscriptions": given, "meta": {"page": 1, **meta}}))


def subscriptions(found: Imported) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = found.document()["subscriptions"]
    return listed


def test_a_listed_subscription_becomes_one_here() -> None:
    document = imported(FIRST).document()
    assert document == {
        "format": 1,
        "event_types": [{"name": "Workfront.PROJ.UPDATE"}],
        "subscribers": [{"name": "workfront-8.8.8.8"}],
        "subscriptions": [
            {
                "subscriber": "workfront-8.8.8.8",
                "name": "workfront-750a636c-5628-48f5-ba26-26b7ce537ac2",
                "event_type": "Workfront.PROJ.UPDATE",
                "filter": "$$->'Body'->'newState'->>'status' = 'CUR'",
                "endpoint": "https://8.8.8.8/hook",
                "policy": "workfront-48h",
                "auth": {"type": "bearer", "token": {"from": f"env:{FIRST_TOKEN}"}},
                "timeout_seconds": 5,
                "status": "ACTIVE",
            }
        ],
    }


def test_a_masked_token_has_to_be_given() -> None:
    found = imported(FIRST)
    assert found.secrets == {}
    assert any(FIRST_TOKEN in line and "masks its token" in line for line in found.differently)


def test_a_token_that_is_not_masked_is_a_secret() -> None:
    found = imported(FIRST | {"authToken": "EauthToken"})
    assert found.secrets == {FIRST_TOKEN: "EauthToken"}
    assert "EauthToken" not in found.report() + json.dumps(found.document())


def test_base64_encoding_becomes_a_script() -> None:
    found = imported(FIRST | {"base64Encoding": "true"})
    assert subscriptions(found)[0]["script"] == BASE64_SCRIPT
    assert any("base64" in line for line in found.differently)


def test_a_frozen_url_is_inactive_and_reported() -> None:
    found = imported(FIRST | {"subscription_url": {"frozen_at": "2026-11-01T10:00:00Z"}})
    assert subscriptions(found)[0]["status"] == "INACTIVE"
    assert any("froze its URL at 2026-11-01" in line for line in found.differently)


def test_version_1_is_reported() -> None:
    found = imported(FIRST | {"version": "v1"})
    assert len(subscriptions(found)) == 1
    assert any("had version v1" in line for line in found.differently)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"eventType": "SHARE"}, "eventType: Give CREATE"),
        (
            {"filters": [{"fieldName": "a", "fieldValue": 1, "comparison": "like"}]},
            "filters.0.comparison: ",
        ),
        ({"url": "nowhere"}, "url: "),
        ({"url": None}, "url: "),
    ],
)
def test_what_cannot_be_said_is_impossible_with_the_reason(
    given: dict[str, Any], reason: str
) -> None:
    found = imported(FIRST, FIRST | {"id": "b"} | given)
    assert len(subscriptions(found)) == 1
    assert [line for line in found.impossible if reason in line] == found.impossible
    assert len(found.impossible) == 1


def test_differences_are_reported() -> None:
    filters = [{"fieldName": "name", "fieldValue": ["x", "y"], "comparison": "contains"}]
    assert any(
        "name contains: " in line for line in imported(FIRST | {"filters": filters}).differently
    )


def test_pages_that_are_missing_are_reported() -> None:
    assert imported(FIRST, total_count=3).impossible == [
        "2 more subscriptions: the source has 1 of 3; put the other pages into the list"
    ]
    pages = [{"subscriptions": [FIRST | {"id": id}], "meta": {"total_count": 2}} for id in "ab"]
    found = import_workfront(json.dumps(pages))
    assert (len(subscriptions(found)), found.impossible) == (2, [])


def test_the_deprecated_list_is_read_too() -> None:
    listed = [
        {
            "id": "a",
            "obj_code": "TASK",
            "event_type": "CREATE",
            "url": "https://8.8.8.8/",
            "auth_token": "t",
        }
    ]
    found = import_workfront(json.dumps(listed))
    assert [subscription["event_type"] for subscription in subscriptions(found)] == [
        "Workfront.TASK.CREATE"
    ]
    assert list(found.secrets.values()) == ["t"]


@pytest.mark.django_db
def test_it_can_be_applied_and_a_plan_after_that_is_empty() -> None:
    found = imported(FIRST, FIRST | {"id": "b", "base64Encoding": True})
    given = {f"env:{FIRST_TOKEN}": "one", f"env:{TOKEN.format('B')}": "two"}
    apply(found.document(), secrets=given)
    assert plan(found.document(), secrets=given).changes == []
    assert sorted(row.auth["token"] for row in Subscription.objects.all()) == ["one", "two"]


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "7", '{"subscriptions": 7}', '{"subscriptions": []}', "[[]]"]
)
def test_what_is_no_such_answer_is_refused(text: str) -> None:
    with pytest.raises(SourceError):
        import_workfront(text)
