"""Keys that are limited to a publisher or subscriber read its data, and nothing else."""

import re
from typing import Any

import pytest

from config.api_schema import schema_document
from delivery.models import Delivery
from delivery.states import Status
from subscriptions.models import Publisher, Scope, Subscription
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, created, refused

SECRET = b'{"secret": "payload-of-the-bank"}'


@pytest.fixture
def shop(db: None) -> Publisher:
    return factories.publisher("shop")


@pytest.fixture
def subscription(db: None) -> Subscription:
    return factories.subscription("orders", subscriber=factories.subscriber("crm"))


@pytest.fixture
def own(shop: Publisher, subscription: Subscription) -> Delivery:
    message = factories.message(event_type=subscription.event_type, publisher=shop)
    return factories.delivery(
        Status.REJECTED, message=message, subscription=subscription, reason="cancelled by ann"
    )


@pytest.fixture
def others(subscription: Subscription) -> Delivery:
    message = factories.message(
        SECRET,
        event_type=subscription.event_type,
        publisher=factories.publisher("bank"),
        headers={"x-secret": "payload-of-the-bank"},
    )
    return factories.delivery(Status.REJECTED, message=message, subscription=subscription)


@pytest.fixture(params=[Scope.PUBLISH, Scope.READ])
def developer(request: pytest.FixtureRequest, shop: Publisher) -> Caller:
    """A caller with a key of the publisher, or with a read key that is limited to it."""
    return caller(request.param, publisher=shop)


def listed(asking: Caller, path: str) -> list[Any]:
    answer = asking.get(path)
    assert answer.status == 200, answer
    return [row["id"] for row in answer.body["results"]]


def test_a_publisher_lists_its_own_messages_and_deliveries(
    own: Delivery, others: Delivery, developer: Caller
) -> None:
    assert listed(developer, "messages") == [own.message.public_id]
    assert listed(developer, "messages?body=number") == [own.message.public_id]
    assert listed(developer, "deliveries") == [own.pk]
    assert listed(developer, f"deliveries?message={own.message.public_id}") == [own.pk]
    explained = developer.get(f"messages/{own.message.public_id}/explain")
    assert [row["subscription"] for row in explained.body["results"]] == ["orders"]


def test_nothing_of_another_publisher_is_found(
    own: Delivery, others: Delivery, developer: Caller
) -> None:
    message = others.message.public_id
    for query in ("publisher=bank", "body=bank", "header=x-secret:%20payload", "id_to=" + message):
        assert message not in listed(developer, f"messages?{query}"), query
    assert listed(developer, f"deliveries?message={message}") == []
    for path in (f"messages/{message}", f"messages/{message}/explain", f"deliveries/{others.pk}"):
        refused(developer.get(path), 404)


@pytest.mark.parametrize(
    "key", [("publisher", Scope.PUBLISH), ("publisher", Scope.READ), ("subscriber", Scope.READ)]
)
def test_names_of_others_are_answered_like_names_that_nobody_has(
    own: Delivery, others: Delivery, shop: Publisher, key: tuple[str, Scope]
) -> None:
    far = factories.subscription("parcels", subscriber=factories.subscriber("far"))
    factories.delivery(subscription=far)
    kind, scope = key
    asking = caller(scope, **{kind: shop if kind == "publisher" else own.subscription.subscriber})
    for parameter, theirs, nobodys in (
        ("subscription", "far/parcels", "fax/parcels"),
        ("subscription", "parcels", "parcel"),
        ("subscriber", "far", "fax"),
    ):
        answers = [asking.get(f"deliveries?{parameter}={name}") for name in (theirs, nobodys)]
        assert [answer.status for answer in answers] == [200, 200]
        assert answers[0].content == answers[1].content
        assert b"far" not in answers[1].content
    assert own.pk in listed(asking, "deliveries?subscription=crm/orders")


@pytest.mark.parametrize("header", ["Destination", "ErrorsTo"])
def test_a_publisher_learns_no_names_of_subscribers(
    shop: Publisher, subscription: Subscription, header: str
) -> None:
    asking = caller(Scope.PUBLISH, publisher=shop)
    path = f"events/{subscription.event_type}/messages"
    said = set()
    for name in ("crm/other", "cr/other", "none/other"):
        problem = refused(asking.ask("POST", path, b"{}", headers={header: name}), 404)
        said.add(problem["detail"].replace(name, "…"))
    assert len(said) == 1


def test_a_publisher_sees_no_details_of_receivers_and_people(
    own: Delivery, developer: Caller
) -> None:
    factories.attempt(own, number=2, error="refused", excerpt=b"stack trace")
    for path in (f"messages/{own.message.public_id}", "deliveries", f"deliveries/{own.pk}"):
        content = developer.get(path).content
        for text in (b"cancelled by ann", b"stack trace", b'"refused"'):
            assert text not in content, path
    (attempt, _) = developer.get(f"deliveries/{own.pk}").body["attempts"]
    assert attempt["status_code"] is not None


def test_a_subscribers_key_reads_its_deliveries_and_lane_and_no_payload(
    own: Delivery, others: Delivery, subscription: Subscription
) -> None:
    elsewhere = factories.delivery(subscription=factories.subscription("far"))
    asking = caller(Scope.READ, subscriber=subscription.subscriber)
    assert listed(asking, "deliveries") == [others.pk, own.pk]
    assert asking.get(f"deliveries/{own.pk}").body["reason"] == "cancelled by ann"
    refused(asking.get(f"deliveries/{elsewhere.pk}"), 404)
    assert asking.get("lanes/crm").status == 200
    refused(asking.get(f"lanes/{elsewhere.subscription.subscriber.name}"), 404)
    assert [lane["name"] for lane in asking.get("lanes").body["results"]] == ["crm"]
    assert listed(asking, "messages") == []
    refused(asking.get(f"messages/{own.message.public_id}"), 404)
    refused(asking.get(f"messages/{own.message.public_id}/explain"), 404)


def test_a_limited_key_is_refused_everywhere_else(
    own: Delivery, others: Delivery, shop: Publisher
) -> None:
    asking = caller(Scope.READ, publisher=shop)
    admitted = set()
    for path, methods in schema_document()["paths"].items():
        for method in methods.keys() & {"get", "post", "patch", "delete"}:
            answer = asking.ask(method.upper(), _filled(path, others), b"{}")
            assert b"payload-of-the-bank" not in answer.content, path
            if answer.status not in (401, 403):
                admitted.add(f"{method} {path.removeprefix('/api/v1/')}")
    open_to_all = {path for path in admitted if path.split()[1].startswith("/")}
    assert admitted - open_to_all == {
        "get messages",
        "get messages/{id}",
        "get messages/{id}/explain",
        "get deliveries",
        "get deliveries/{id}",
        "get lanes",
        "get lanes/{name}",
    }


def test_metrics_are_closed_to_a_limited_key(shop: Publisher) -> None:
    asking = caller(Scope.READ, publisher=shop)
    elsewhere = {"X-Forwarded-For": "198.51.100.7"}
    assert asking.ask("GET", "/metrics", headers=elsewhere).status in (401, 403)
    assert caller(Scope.READ).ask("GET", "/metrics", headers=elsewhere).status == 200


def test_a_read_key_is_limited_when_it_is_created(shop: Publisher) -> None:
    manager = caller()
    key = created(manager.post("keys", {"scope": "read", "publisher": "shop"}))
    assert (key["publisher"], key["subscriber"]) == ("shop", None)
    assert listed(Caller(key["key"]), "messages") == []
    refused(manager.post("keys", {"scope": "manage", "publisher": "shop"}), 400)
    factories.subscriber("crm")
    refused(manager.post("keys", {"scope": "read", "publisher": "shop", "subscriber": "crm"}), 400)


def _filled(path: str, delivery: Delivery) -> str:
    """Return the address of a path about the other publisher's rows."""
    ids = {
        "/messages/": delivery.message.public_id,
        "/deliveries/": str(delivery.pk),
        "/lanes/": "crm",
        "/publishers/": "bank",
        "/subscribers/": "crm",
        "/mailboxes/": "crm",
        "/events/": delivery.message.event_type.name,
    }
    value = next((id for part, id in ids.items() if part in path), "1")
    return re.sub(r"\{\w+\}", value, re.sub(r"(keys|publish-ids)/\{id\}", r"\1/1", path))
