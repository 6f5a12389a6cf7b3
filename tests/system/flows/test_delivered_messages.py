"""Delivered messages in the started product: only their destination gets them."""

from itertools import cycle

import pytest
import requests

from tests.support.product import Flow, StartedSubscription
from tests.support.receivers import Receiver

PUBLISHED = ""


@pytest.fixture
def two_of_crm_and_one_else(flow: Flow, receiver: Receiver) -> list[StartedSubscription]:
    crm = flow.subscriber("crm")
    return [
        flow.subscribe(receiver.endpoint("first"), subscriber=crm),
        flow.subscribe(receiver.endpoint("second"), subscriber=crm),
        flow.subscribe(receiver.endpoint("else")),
    ]


def test_a_delivered_message_reaches_only_its_destination(
    flow: Flow, two_of_crm_and_one_else: list[StartedSubscription]
) -> None:
    first, second, other = two_of_crm_and_one_else
    crm = first.subscriber
    destinations = [PUBLISHED, crm, f"{crm}/second", other.subscriber]
    sent: dict[str, list[str]] = {destination: [] for destination in destinations}
    for _, destination in zip(range(40), cycle(destinations), strict=False):
        sent[destination].append(
            flow.publish(Destination=destination) if destination else flow.publish()
        )
    for of, wanted in (
        (first, [PUBLISHED, crm]),
        (second, [PUBLISHED, crm, f"{crm}/second"]),
        (other, [PUBLISHED, other.subscriber]),
    ):
        expected = sorted((id for destination in wanted for id in sent[destination]), key=number)
        assert [request.id for request in of.endpoint.wait_for_last(expected[-1])] == expected
        assert flow.wait_until_settled(of) == ["DELIVERED"] * len(expected)


def test_the_history_contains_the_destination(
    flow: Flow, two_of_crm_and_one_else: list[StartedSubscription]
) -> None:
    first, _, other = two_of_crm_and_one_else
    message = flow.publish(Destination=first.subscriber)
    shown = flow.rest.get(f"messages/{message}")
    assert shown["destination"] == first.subscriber
    explained = flow.rest.get(f"messages/{message}/explain")["results"]
    reasons = {explanation["subscription_id"]: explanation["reason"] for explanation in explained}
    assert "another destination" in reasons[other.id]


def number(message: str) -> int:
    return int(message.removeprefix("msg_"))


def test_a_header_beyond_ascii_is_refused_rather_than_stored_empty(flow: Flow) -> None:
    publisher = flow.publisher
    url = f"{publisher.base_url}/api/v1/events/{flow.event_type}/messages"
    sent = {"Authorization": f"Bearer {publisher.key}".encode(), "X-Name": "Jürgen".encode()}
    answer = requests.post(url, b"{}", headers=sent, timeout=30)
    assert (answer.status_code, "x-name is not ASCII" in answer.json()["detail"]) == (400, True)
