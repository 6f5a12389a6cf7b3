"""Addresses as clients of other systems write them: slashes at the end, parameters of their own."""

from urllib.parse import urljoin

import orjson
import pytest

from delivery.models import Status
from subscriptions.models import EventType, Scope
from tests.support import factories
from tests.unit.delivery.api.client import caller, fields_of, refused
from tests.unit.delivery.mailbox.box import box, status_of
from tests.unit.delivery.vendors.jenkins import EVENT, jenkins
from tests.unit.delivery.vendors.queue_client import QueueClient

pytestmark = pytest.mark.django_db

QUEUE = "/event/queue/q-17"
SUBSCRIPTIONS = "/attask/eventsubscription/api/v1/subscriptions"


@pytest.mark.parametrize("path", ["next", "next/", "next?max=5", "next/?max=5"])
def test_a_link_of_the_queue_leads_to_its_acknowledgement(path: str) -> None:
    mailbox = box(factories.subscriber("crm", queue_id="q-17"))
    _, key = factories.api_key(Scope.FETCH, subscriber=mailbox.subscriber)
    (delivery,) = mailbox.put()
    client = QueueClient("crm", key)
    answer = client.ask("POST", f"{QUEUE}/{path}")
    assert answer.status == 200
    (link,) = answer.body["link"]
    assert client.ask("POST", urljoin(f"{QUEUE}/{path}", link["href"])).status == 200
    assert status_of(delivery) == Status.DELIVERED
    assert client.ask("GET", f"{QUEUE}/status/?verbose=1").status == 200


@pytest.mark.parametrize("end", ["", "/", "?source=ci", "/?source=ci"])
def test_teamforges_addresses_may_end_with_anything(end: str) -> None:
    EventType.objects.create(name=EVENT)
    plugin = jenkins()
    assert plugin.post(f"/v4/inbox/{EVENT}/{plugin.id}{end}").status == 201
    body = b'{"Username": "jenkins", "Password": "%s"}' % plugin.key.encode()
    assert plugin.post(f"/login{end}", body).status == 200


def test_workfronts_list_ignores_parameters_that_it_does_not_know() -> None:
    client = caller()
    answer = client.get(f"{SUBSCRIPTIONS}/?sort=date&page=1")
    assert (answer.status, answer.body["meta"]["page"]) == (200, 1)
    assert fields_of(refused(client.get(f"{SUBSCRIPTIONS}?page=0"), 400)) == {"page"}


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_workfront_takes_json_by_any_content_type(content_type: str) -> None:
    body = orjson.dumps(
        {
            "objCode": "PROJ",
            "eventType": "UPDATE",
            "url": "https://receiver.example/hook",
            "authToken": "t",
        }
    )
    assert caller().ask("POST", SUBSCRIPTIONS, body, content_type=content_type).status == 201


@pytest.mark.parametrize(
    "path",
    [f"{QUEUE}/more", "/event/queue/inbox/nack", "/attask/eventsubscription/api/v2/x/inbox"],
)
@pytest.mark.parametrize(("host", "status"), [("testserver", 404), ("no host", 400)])
def test_what_no_view_answers_is_a_problem_document(path: str, host: str, status: int) -> None:
    refused(caller().ask("POST", path, headers={"host": host}), status)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_id_that_is_none_is_a_problem_in_json(method: str) -> None:
    refused(caller().ask(method, f"{SUBSCRIPTIONS}/nonsense"), 404, "not-found")
