"""Workfront's calls for event subscriptions."""

from typing import Any

from subscriptions.models import Subscription, WorkfrontSubscription
from tests.unit.delivery.api.client import Caller, Json

PLACE = "/attask/eventsubscription/api/v1/subscriptions"
TOKEN = "EauthTokenWorkfrontRocks1234_"
WANTED = {
    "objCode": "PROJ",
    "eventType": "UPDATE",
    "url": "https://receiver.example/hook",
    "authToken": TOKEN,
}


def create(client: Caller, **fields: Any) -> Json:
    answer = client.post(PLACE, WANTED | fields)
    assert answer.status == 201, answer
    body: Json = answer.body
    assert answer.headers["Location"].endswith(f"{PLACE}/{body['id']}")
    return body


def read(client: Caller, id: str) -> Json:
    answer = client.get(f"{PLACE}/{id}")
    assert answer.status == 200, answer
    body: Json = answer.body
    return body


def row_of(made: Json) -> Subscription:
    return WorkfrontSubscription.objects.get(pk=made["id"]).subscription
