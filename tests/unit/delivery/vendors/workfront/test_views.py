"""Workfront's event subscriptions by its own calls, and their rows here."""

import uuid
from typing import Any

import pytest

from delivery.models import UrlHealth
from delivery.vendors.workfront.encoding import BASE64_SCRIPT
from subscriptions.models import (
    ConfigurationChange,
    EventType,
    Scope,
    Subscriber,
    Subscription,
    WorkfrontSubscription,
)
from tests.support import factories
from tests.unit.delivery.api.client import ApiAnswer, Caller, Json, caller, fields_of, refused
from tests.unit.delivery.vendors.workfront_calls import PLACE, TOKEN, WANTED, create, read, row_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Caller:
    return caller()


class TestCreating:
    def test_it_is_a_subscription_as_any_other(self, client: Caller) -> None:
        filters = [{"fieldName": "status", "fieldValue": "CUR"}]
        made = create(client, filters=filters, objId="59d7ddf7")
        assert (uuid.UUID(made["id"]).version, made["version"]) == (4, "v2")
        row = row_of(made)
        assert (row.event_type.name, row.event_type.kind) == ("Workfront.PROJ.UPDATE", "TOPIC")
        assert row.subscriber.name == "workfront-receiver.example"
        assert (row.endpoint, row.policy.name, row.timeout_seconds) == (
            WANTED["url"],
            "workfront-48h",
            5,
        )
        assert row.auth == {"type": "bearer", "token": TOKEN}
        assert row.filter == (
            "$$->'Body'->'newState'->>'ID' = '59d7ddf7' "
            "AND $$->'Body'->'newState'->>'status' = 'CUR'"
        )
        assert (row.status, row.secrets.count()) == ("ACTIVE", 1)

    def test_each_change_is_in_the_log_and_no_token(self, client: Caller) -> None:
        create(client)
        changed = ConfigurationChange.objects.values_list("object_type", "object_name")
        name = f"workfront-receiver.example/workfront-{WorkfrontSubscription.objects.get().pk}"
        assert set(changed) >= {
            ("event type", "Workfront.PROJ.UPDATE"),
            ("subscriber", "workfront-receiver.example"),
            ("subscription", name),
        }
        assert TOKEN not in str(list(ConfigurationChange.objects.values_list("after", flat=True)))
        assert "authToken" not in WorkfrontSubscription.objects.get().document

    def test_each_host_has_a_subscriber_of_its_own(self, client: Caller) -> None:
        urls = [
            "https://a.example/1",
            "https://a.example:443/2",
            "https://a.example:8443/",
            "https://b.example/",
        ]
        for url in urls:
            create(client, url=url)
        names = Subscriber.objects.order_by("name").values_list("name", flat=True)
        assert list(names) == [
            "workfront-a.example",
            "workfront-a.example-8443",
            "workfront-b.example",
        ]

    def test_the_same_is_a_conflict_and_leaves_nothing(self, client: Caller) -> None:
        create(client)
        again = client.post(PLACE, WANTED | {"authToken": "another", "filterConnector": "OR"})
        refused(again, 409, "duplicate-subscription")
        assert Subscription.objects.count() == WorkfrontSubscription.objects.count() == 1

    @pytest.mark.parametrize(
        "other",
        [
            {"url": "https://receiver.example/other"},
            {"eventType": "CREATE"},
            {"objCode": "TASK"},
            {"objId": "1"},
            {"filters": [{"fieldName": "a", "fieldValue": "b"}]},
        ],
    )
    def test_whatever_differs_is_another(self, client: Caller, other: Json) -> None:
        assert create(client)["id"] != create(client, **other)["id"]

    def test_differences_from_workfront_are_reported(self, client: Caller) -> None:
        made = create(
            client,
            filters=[{"fieldName": "a", "fieldValue": ["b", "c"], "comparison": "contains"}],
        )
        assert made["differences"][0].startswith("a contains: ")

    @pytest.mark.parametrize(
        ("given", "field"),
        [
            ({"url": "requestb.in/x"}, "url"),
            ({"url": "PATCH:https://receiver.example/"}, "url"),
            ({"url": "http://169.254.169.254/"}, "url"),
            ({"authToken": "x" * 255}, "authToken"),
            ({"authToken": ""}, "authToken"),
            ({"authToken": "a\r\nb"}, "authToken"),
            ({"authToken": None}, "authToken"),
            ({"objCode": 1}, "objCode"),
            ({"eventType": "SHARE"}, "eventType"),
            ({"more": 1}, "more"),
            ({"filters": [{"fieldName": "a\0", "fieldValue": 1}]}, "filters"),
            (
                {"filters": [{"fieldName": "a", "fieldValue": "b", "comparison": "like"}]},
                "filters.0.comparison",
            ),
            ({"base64Encoding": "yes"}, "base64Encoding"),
            ({"version": "v1"}, "version"),
        ],
    )
    def test_what_cannot_be_is_refused_and_nothing_is_stored(
        self, client: Caller, given: Json, field: str
    ) -> None:
        assert fields_of(refused(client.post(PLACE, WANTED | given), 400)) == {field}
        assert not Subscription.objects.exists()
        assert not Subscriber.objects.exists()
        assert not EventType.objects.filter(name__startswith="Workfront.").exists()

    def test_an_encoding_is_a_script_and_makes_another_subscription(self, client: Caller) -> None:
        plain, encoded = create(client), create(client, base64Encoding="true")
        assert (row_of(plain).script, row_of(encoded).script) == ("", BASE64_SCRIPT)
        assert [
            read(client, subscription["id"])["base64Encoding"] for subscription in (plain, encoded)
        ] == [
            False,
            True,
        ]
        refused(
            client.post(PLACE, WANTED | {"base64Encoding": True}), 409, "duplicate-subscription"
        )

    def test_an_encoding_needs_a_topic(self, client: Caller) -> None:
        factories.event_type("Workfront.PROJ.UPDATE", kind="QUEUE")
        answer = client.post(PLACE, WANTED | {"base64Encoding": True})
        assert fields_of(refused(answer, 400)) == {"base64Encoding"}

    @pytest.mark.parametrize("body", [b"", b"[]", b"7", b'{"objCode": ', b"{}"])
    def test_what_is_no_document_is_refused(self, client: Caller, body: bytes) -> None:
        refused(client.ask("POST", PLACE, body), 400)


class TestReading:
    def test_one_is_read_as_it_was_given_with_its_token_masked(self, client: Caller) -> None:
        filters = [
            {"fieldName": "status", "fieldValue": "CUR", "comparison": "ne", "state": "oldState"}
        ]
        made = create(client, filters=filters, filterConnector="OR", objId="59d7ddf7")
        shown = read(client, made["id"])
        url = shown.pop("subscription_url")
        times = [
            shown.pop(name) for name in ("date_created", "date_modified", "dateVersionUpdated")
        ]
        assert all(time.endswith("Z") for time in times)
        assert shown == {
            "id": made["id"],
            "customerId": None,
            "objId": "59d7ddf7",
            "objCode": "PROJ",
            "url": WANTED["url"],
            "eventType": "UPDATE",
            "authToken": "*" * (len(TOKEN) - 4) + TOKEN[-4:],
            "filters": filters,
            "filterConnector": "OR",
            "base64Encoding": False,
            "version": "v2",
        }
        assert url.pop("date_created").endswith("Z")
        nothing = {"successes": 0, "failures": 0, "disabled_at": None, "frozen_at": None}
        assert url == {"url": WANTED["url"]} | nothing

    def test_a_short_token_is_masked_whole(self, client: Caller) -> None:
        assert read(client, create(client, authToken="12345678")["id"])["authToken"] == "********"

    def test_the_state_of_the_url_is_reported(self, client: Caller) -> None:
        made = create(client)
        UrlHealth.objects.create(url=WANTED["url"], state="FROZEN", attempts=10, failures=7)
        url = read(client, made["id"])["subscription_url"]
        assert (url["successes"], url["failures"], url["disabled_at"]) == (3, 7, None)
        assert url["frozen_at"] is not None

    def test_they_are_listed_by_pages(self, client: Caller) -> None:
        made = [create(client, objId=str(number))["id"] for number in range(5)]
        factories.subscription()
        whole = client.get(PLACE).body
        assert [subscription["id"] for subscription in whole["subscriptions"]] == made
        assert whole["meta"] == {"page": 1, "page_count": 1, "limit": 100, "total_count": 5}
        last = client.get(f"{PLACE}?page=3&limit=2").body
        assert [subscription["id"] for subscription in last["subscriptions"]] == made[4:]
        assert last["meta"] == {"page": 3, "page_count": 3, "limit": 2, "total_count": 5}
        assert client.get(f"{PLACE}?page=4&limit=2").body["subscriptions"] == []

    def test_the_oldest_is_listed_first_whatever_its_host(self, client: Caller) -> None:
        made = [create(client, url=f"https://{host}.example/hook")["id"] for host in "zam"]
        assert [
            subscription["id"] for subscription in client.get(PLACE).body["subscriptions"]
        ] == made

    def test_an_empty_list_has_no_page(self, client: Caller) -> None:
        meta = {"page": 1, "page_count": 0, "limit": 100, "total_count": 0}
        assert client.get(PLACE).body == {"subscriptions": [], "meta": meta}

    @pytest.mark.parametrize("query", ["page=0", "limit=0", "limit=1001", "page=x"])
    def test_a_wrong_page_is_refused(self, client: Caller, query: str) -> None:
        refused(client.get(f"{PLACE}?{query}"), 400)

    def test_the_deprecated_list_has_names_with_underscores(self, client: Caller) -> None:
        made = create(client)
        (shown,) = client.get(f"{PLACE}/list").body
        assert (shown["id"], shown["obj_code"], shown["event_type"]) == (
            made["id"],
            "PROJ",
            "UPDATE",
        )
        assert shown["auth_token"].endswith(TOKEN[-4:])

    def test_the_number_of_queries_does_not_grow(
        self, client: Caller, django_assert_max_num_queries: Any
    ) -> None:
        for number in range(10):
            create(client, objId=str(number), url=f"https://host{number}.example/")
        with django_assert_max_num_queries(5):
            assert len(client.get(PLACE).body["subscriptions"]) == 10


class TestDeleting:
    def test_what_was_never_used_is_deleted(self, client: Caller) -> None:
        made = create(client)
        answer = client.delete(f"{PLACE}/{made['id']}")
        assert (answer.status, answer.content) == (200, b"")
        assert not Subscription.objects.exists()
        refused(client.delete(f"{PLACE}/{made['id']}"), 404)
        refused(client.get(f"{PLACE}/{made['id']}"), 404)

    def test_what_has_a_history_stays_inactive_and_may_be_created_anew(
        self, client: Caller
    ) -> None:
        made = create(client)
        row = row_of(made)
        factories.delivery(subscription=row)
        assert client.delete(f"{PLACE}/{made['id']}").status == 200
        row.refresh_from_db()
        assert row.status == "INACTIVE"
        refused(client.get(f"{PLACE}/{made['id']}"), 404)
        assert create(client)["id"] != made["id"]

    def test_what_is_deleted_in_the_console_is_gone_here(self, client: Caller) -> None:
        made = create(client)
        assert client.delete(f"subscriptions/{row_of(made).pk}").status == 204
        refused(client.get(f"{PLACE}/{made['id']}"), 404)
        create(client)

    @pytest.mark.parametrize(
        "id", ["0" * 32, "7840a462-474e-4890-aa98-89308363910b", "-" * 36, "x"]
    )
    def test_an_unknown_one_is_404(self, client: Caller, id: str) -> None:
        assert client.delete(f"{PLACE}/{id}").status == 404


class TestManageKeys:
    @pytest.mark.parametrize("header", ["authorization", "sessionid", "x-user-token"])
    @pytest.mark.parametrize("scheme", ["", "Bearer "])
    def test_a_manage_key_stands_where_the_api_key_stood(self, header: str, scheme: str) -> None:
        _, key = factories.api_key()
        answer = Caller(None).ask("GET", PLACE, headers={header: scheme + key})
        assert answer.status == 200, answer

    @pytest.mark.parametrize(
        "headers",
        [{}, {"authorization": ""}, {"authorization": "nonsense"}, {"authorization": "Basic eDp5"}],
    )
    def test_who_has_none_is_401(self, headers: dict[str, str]) -> None:
        answer: ApiAnswer = Caller(None).ask("GET", PLACE, headers=headers)
        refused(answer, 401)

    @pytest.mark.parametrize("scope", [Scope.READ, Scope.PUBLISH, Scope.FETCH])
    def test_other_keys_are_403(self, scope: Scope) -> None:
        refused(caller(scope).get(PLACE), 403, "wrong-scope")
        refused(caller(scope).post(PLACE, WANTED), 403, "wrong-scope")
