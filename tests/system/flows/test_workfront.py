"""A client of Workfront's event subscriptions with a started product."""

import base64

import orjson
import requests

from tests.support.product import Flow
from tests.support.receivers import Receiver

PLACE = "/attask/eventsubscription/api/v1/subscriptions"
SECONDS = 30


def test_what_is_created_receives_what_its_filters_want(flow: Flow, receiver: Receiver) -> None:
    place, headers = f"{flow.rest.base_url}{PLACE}", {"Authorization": flow.rest.key}
    code = f"T{flow.event_type.rpartition('.')[2].upper()}"
    endpoint = receiver.endpoint(f"workfront-{code}")
    wanted = {
        "objCode": code,
        "eventType": "UPDATE",
        "url": endpoint.url,
        "authToken": "EauthTokenWorkfrontRocks1234_",
        "filters": [{"fieldName": "status", "comparison": "changed"}],
    }
    made = requests.post(place, json=wanted, headers=headers, timeout=SECONDS)
    assert made.status_code == 201, made.text
    assert (
        requests.get(made.headers["Location"], headers=headers, timeout=SECONDS).json()["objCode"]
        == code
    )
    assert requests.post(place, json=wanted, headers=headers, timeout=SECONDS).status_code == 409

    states = [("CUR", "CUR"), ("NEW", "CUR"), ("CUR", "CUR"), ("CUR", "DED")]
    bodies = [
        orjson.dumps(
            {"eventType": "UPDATE", "newState": {"status": new}, "oldState": {"status": old}}
        )
        for old, new in states
    ]
    for body in bodies:
        flow.publisher.publish(f"Workfront.{code}.UPDATE", body)
    got = endpoint.wait_for_count(2)
    assert [request.body for request in got] == [bodies[1], bodies[3]]
    assert got[0].headers["authorization"] == "Bearer EauthTokenWorkfrontRocks1234_"

    location = made.headers["Location"]
    assert requests.delete(location, headers=headers, timeout=SECONDS).status_code == 200
    assert requests.get(location, headers=headers, timeout=SECONDS).status_code == 404


def test_an_encoded_subscription_gets_both_states_as_base64(flow: Flow, receiver: Receiver) -> None:
    """Recorded from the vendor's documentation: base64Encoding comes as a text."""
    place, headers = f"{flow.rest.base_url}{PLACE}", {"sessionID": flow.rest.key}
    code = f"B{flow.event_type.rpartition('.')[2].upper()}"
    endpoint = receiver.endpoint(f"workfront-{code}")
    recorded = {
        "objCode": code,
        "eventType": "UPDATE",
        "url": endpoint.url,
        "authToken": "EauthTokenWorkfrontRocks1234_",
        "base64Encoding": "true",
        "filters": [{"fieldName": "status", "fieldValue": "CUR"}],
    }
    made = requests.post(place, json=recorded, headers=headers, timeout=SECONDS)
    assert made.status_code == 201, made.text
    id = made.json()["id"]
    version = requests.put(
        f"{place}/{id}/version", json={"version": "v2"}, headers=headers, timeout=SECONDS
    )
    assert (version.status_code, version.json()) == (200, {"id": id, "version": "v2"})

    states = {"newState": {"status": "CUR", "name": "Ü"}, "oldState": {"status": "NEW"}}
    flow.publisher.publish(
        f"Workfront.{code}.UPDATE", orjson.dumps({"eventType": "UPDATE", **states})
    )
    (got,) = endpoint.wait_for_count(1)
    sent = orjson.loads(got.body)
    assert sent["eventType"] == "UPDATE"
    assert {name: orjson.loads(base64.b64decode(sent[name])) for name in states} == states
