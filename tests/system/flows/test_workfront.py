"""A client of Workfront's event subscriptions with a started product."""

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
    assert requests.get(made.headers["Location"], headers=headers, timeout=SECONDS).json()["objCode"] == code
    assert requests.post(place, json=wanted, headers=headers, timeout=SECONDS).status_code == 409

    states = [("CUR", "CUR"), ("NEW", "CUR"), ("CUR", "CUR"), ("CUR", "DED")]
    bodies = [
        orjson.dumps({"eventType": "UPDATE", "newState": {"status": new}, "oldState": {"status": old}})
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
