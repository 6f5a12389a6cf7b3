"""Workfront's calls that change the version of event subscriptions: there is one version."""

import uuid

import orjson
import pytest

from tests.unit.delivery.api.client import ApiAnswer, Caller, Json, fields_of, refused
from tests.unit.delivery.vendors.workfront.test_views import client
from tests.unit.delivery.vendors.workfront_calls import PLACE, create

__all__ = ["client"]

pytestmark = pytest.mark.django_db


def test_the_version_of_one_is_accepted_as_it_is(client: Caller) -> None:
    made = create(client)
    answer = client.ask("PUT", f"{PLACE}/{made['id']}/version", b'{"version": "v2"}')
    assert (answer.status, answer.body) == (200, {"id": made["id"], "version": "v2"})


def test_several_or_all_are_named_at_once(client: Caller) -> None:
    ids = [create(client, objId=str(number))["id"] for number in range(3)]
    for name in ("subscriptionIds", "subscription_ids"):
        some = put(client, {name: ids[:2], "version": "v2"})
        assert some.body == {"subscription_ids": ids[:2], "version": "v2"}
    everything = put(client, {"allCustomerSubscriptions": True, "version": "v2"})
    assert everything.body == {"subscription_ids": ids, "version": "v2"}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"version": "v1", "allCustomerSubscriptions": True}, "version"),
        ({"allCustomerSubscriptions": True}, "version"),
        ({"version": "v2"}, "subscriptionIds"),
        ({"version": "v2", "allCustomerSubscriptions": False}, "subscriptionIds"),
        ({"version": "v2", "subscriptionIds": []}, "subscriptionIds"),
        ({"version": "v2", "subscriptionIds": ["x"]}, "subscriptionIds.0"),
        ({"version": "v2", "more": 1}, "more"),
    ],
)
def test_another_version_is_refused(client: Caller, given: Json, field: str) -> None:
    assert fields_of(refused(put(client, given), 400)) == {field}


def test_v1_is_refused_for_one(client: Caller) -> None:
    made = create(client)
    answer = client.ask("PUT", f"{PLACE}/{made['id']}/version", b'{"version": "v1"}')
    assert fields_of(refused(answer, 400)) == {"version"}


def test_an_unknown_one_is_404(client: Caller) -> None:
    unknown = str(uuid.uuid4())
    refused(client.ask("PUT", f"{PLACE}/{unknown}/version", b'{"version": "v2"}'), 404)
    answer = put(client, {"subscriptionIds": [create(client)["id"], unknown], "version": "v2"})
    assert unknown in refused(answer, 404)["detail"]


def put(client: Caller, given: Json) -> ApiAnswer:
    return client.ask("PUT", f"{PLACE}/version", orjson.dumps(given))
