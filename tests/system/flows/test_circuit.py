"""The URL circuit breaker in the product: holds, probes, enables, freezes, never discards."""

import secrets
from itertools import pairwise
from typing import Any

import orjson

from tests.support.product import Flow, StartedSubscription
from tests.support.receivers import OK, Answer, Receiver
from tests.system.flows.test_retries import policy_like
from tests.system.operation.installation import eventually

QUICK = {
    "breaks_circuit": True,
    "retry_seconds": 0.2,
    "max_attempts": 1000,
    "breaker_failures": 5,
    "breaker_probe_seconds": 1,
}


def subscribe(flow: Flow, receiver: Receiver, **policy: object) -> StartedSubscription:
    name = policy_like(flow.product, "workfront-48h", **(QUICK | policy))
    return flow.subscribe(receiver.endpoint(f"hook-{secrets.token_hex(4)}"), policy=name)


def health(flow: Flow, of: StartedSubscription) -> dict[str, Any]:
    with flow.product.connect() as connection:
        found = connection.execute(
            "SELECT state, failures_in_row, attempts, failures FROM delivery_urlhealth "
            "WHERE url = %s",
            (of.endpoint.url,),
        ).fetchone()
    return (
        dict(zip(("state", "in_row", "attempts", "failures"), found, strict=True)) if found else {}
    )


def wait_until(flow: Flow, of: StartedSubscription, state: str) -> None:
    eventually(lambda: health(flow, of).get("state") == state, f"{of.endpoint.url} is {state}")


def test_a_url_that_keeps_failing_is_disabled_and_probed_one_at_a_time(
    flow: Flow, receiver: Receiver
) -> None:
    of = subscribe(flow, receiver)
    of.endpoint.always(Answer(500))
    flow.publish_numbered(30)
    wait_until(flow, of, "DISABLED")
    # A retry may have been in flight with the fifth failure; after that there is one per second.
    received = of.endpoint.wait_for_count(10)
    probes = received[6:]
    assert all(later.at - earlier.at >= 0.9 for earlier, later in pairwise(probes))
    assert flow.statuses(of) == ["PENDING"] * 30
    assert flow.endpoint_state(of) == "DISABLED"
    of.endpoint.always(OK)
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 30
    assert health(flow, of)["state"] == "ENABLED"


def test_a_share_of_failures_disables_it_after_enough_attempts(
    flow: Flow, receiver: Receiver
) -> None:
    of = subscribe(
        flow,
        receiver,
        breaker_failures=1000,
        breaker_attempts=10,
        breaker_percent=70,
        retry_seconds=600,
    )
    of.endpoint.follow(
        lambda request: OK if int(orjson.loads(request.body)["number"]) % 5 == 0 else Answer(500)
    )
    flow.publish_numbered(40)
    wait_until(flow, of, "DISABLED")
    found = health(flow, of)
    assert found["attempts"] > 10
    assert found["failures"] / found["attempts"] > 0.7


def test_a_frozen_url_gets_no_request_until_a_person_releases_it(
    flow: Flow, receiver: Receiver
) -> None:
    of = subscribe(flow, receiver, freeze_failures=5, freeze_failures_at_once=6)
    of.endpoint.always(Answer(500))
    flow.publish_numbered(10)
    wait_until(flow, of, "FROZEN")
    assert flow.endpoint_state(of) == "FROZEN"
    of.endpoint.always(OK)
    asked = len(of.endpoint.received)
    other = flow.subscribe(receiver.endpoint(f"other-{secrets.token_hex(4)}"))
    flow.publish()
    assert flow.wait_until_settled(other) == ["DELIVERED"]
    assert len(of.endpoint.received) == asked
    flow.rest.post("url-health/release", {"url": of.endpoint.url})
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 11


def test_after_a_410_nothing_is_sent_until_a_person_releases_the_url_and_nothing_is_lost(
    flow: Flow, receiver: Receiver
) -> None:
    name = policy_like(flow.product, "standard-webhooks", retry_waits="0.2", max_attempts=1000)
    of = flow.subscribe(receiver.endpoint(f"hook-{secrets.token_hex(4)}"), policy=name)
    of.endpoint.always(Answer(410))
    flow.publish()
    wait_until(flow, of, "FROZEN")
    asked = len(of.endpoint.received)
    other = flow.subscribe(
        receiver.endpoint(f"other-{secrets.token_hex(4)}"), subscriber=of.subscriber
    )
    flow.publish_numbered(10)
    assert flow.wait_until_settled(other) == ["DELIVERED"] * 10
    assert len(of.endpoint.received) == asked
    assert flow.statuses(of) == ["PENDING"] * 11
    assert flow.endpoint_state(of) == "FROZEN"
    of.endpoint.always(OK)
    flow.rest.post("url-health/release", {"url": of.endpoint.url})
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 11


def test_another_subscription_with_that_url_is_held_too_unless_its_policy_has_no_breaker(
    flow: Flow, receiver: Receiver
) -> None:
    of = subscribe(flow, receiver, breaker_probe_seconds=3600)
    of.endpoint.always(Answer(500))
    flow.publish_numbered(10)
    wait_until(flow, of, "DISABLED")
    of.endpoint.always(OK)
    url = {"endpoint": of.endpoint.url, "event_type": flow.event_type}
    shared = flow.rest.post(
        "subscriptions",
        url
        | {"name": "shared", "subscriber": flow.subscriber("shared"), "policy": "workfront-48h"},
    )
    plain = flow.rest.post(
        "subscriptions", url | {"name": "plain", "subscriber": flow.subscriber("plain")}
    )
    flow.publish()

    def statuses(id: int) -> list[str]:
        return [row["status"] for row in flow.rest.all("deliveries", subscription=id)]

    eventually(lambda: statuses(plain["id"]) == ["DELIVERED"], "teamforge knows no breaker")
    assert statuses(shared["id"]) == ["PENDING"]


def test_other_subscriptions_of_its_subscriber_flow_while_it_is_disabled(
    flow: Flow, receiver: Receiver
) -> None:
    of = subscribe(flow, receiver, breaker_probe_seconds=3600)
    of.endpoint.always(Answer(500))
    flow.publish_numbered(10)
    wait_until(flow, of, "DISABLED")
    other = flow.subscribe(
        receiver.endpoint(f"other-{secrets.token_hex(4)}"), subscriber=of.subscriber
    )
    flow.publish()
    assert flow.wait_until_settled(other) == ["DELIVERED"]


def test_a_success_does_not_wait_for_other_subscriptions_of_its_url(
    flow: Flow, receiver: Receiver
) -> None:
    of = subscribe(flow, receiver)
    flow.publish()
    eventually(lambda: health(flow, of).get("attempts") == 1, "the first success is counted")
    with flow.product.connect() as another_sender, another_sender.transaction():
        another_sender.execute(
            "SELECT FROM delivery_urlhealth WHERE url = %s FOR UPDATE", (of.endpoint.url,)
        )
        flow.publish_numbered(20)
        assert flow.wait_until_settled(of) == ["DELIVERED"] * 21
    eventually(
        lambda: health(flow, of)["attempts"] == 21, "the others are counted once the row is free"
    )
