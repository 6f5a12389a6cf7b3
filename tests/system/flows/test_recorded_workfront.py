"""Recorded requests of Workfront's clients, replayed byte for byte to a started product."""

from dataclasses import dataclass
from urllib.parse import urlsplit

import orjson
import pytest

from tests.support.product import Flow
from tests.support.raw_http import RawAnswer, RawConnection, filled, raw_connection
from tests.support.receivers import Receiver
from tests.system.flows import recorded_workfront as recorded

MASKED = "*" * 25 + "234_"


@dataclass(frozen=True, slots=True)
class WorkfrontClient:
    """Fills recorded requests in; a target is the path of an answered Location."""

    connection: RawConnection
    values: dict[str, str]

    def send(self, text: str, **values: str) -> RawAnswer:
        return self.connection.send(filled(text, **self.values | values))

    def create(self, text: str) -> str:
        """Create the subscription and return the target that the answer names."""
        made = self.send(text)
        assert made.status_line == "HTTP/1.1 201 Created"
        assert made.headers["content-type"] == "application/json"
        assert made.json["version"] == "v2"
        location = urlsplit(made.headers["location"])
        assert location.netloc == self.values["host"]
        assert location.path == (
            f"/attask/eventsubscription/api/v1/subscriptions/{made.json['id']}"
        )
        return location.path


def values_of(flow: Flow, url: str) -> dict[str, str]:
    return {
        "host": urlsplit(flow.rest.base_url).netloc,
        "key": flow.rest.key,
        "code": f"R{flow.event_type.rpartition('.')[2].upper()}",
        "url": url,
    }


@pytest.mark.parametrize(
    "create",
    [recorded.CURL_CREATE, recorded.CURL_CREATE_AS_FORM],
    ids=["as JSON", "as curl -d alone says"],
)
def test_curls_bytes_create_read_and_change_a_subscription(
    flow: Flow, receiver: Receiver, create: str
) -> None:
    endpoint = receiver.endpoint("workfront")
    values = values_of(flow, endpoint.url)
    with raw_connection(flow.rest.base_url) as connection:
        client = WorkfrontClient(connection, values)
        target = client.create(create)
        read = client.send(recorded.CURL_READ, target=target)
        assert read.status_line == "HTTP/1.1 200 OK"
        assert read.headers["content-type"] == "application/json"
        shown = {"objCode": values["code"], "eventType": "UPDATE", "url": endpoint.url}
        assert {name: read.json[name] for name in shown} == shown
        assert read.json["authToken"] == MASKED
        again = client.send(create)
        assert (again.status_line, again.headers["content-type"]) == (
            "HTTP/1.1 409 Conflict",
            "application/problem+json",
        )
        version = client.send(recorded.CURL_PUT_VERSION, target=target)
        assert version.status_line == "HTTP/1.1 200 OK"
        assert version.json == {"id": target.rpartition("/")[2], "version": "v2"}
    body = orjson.dumps(
        {"eventType": "UPDATE", "newState": {"status": "CUR"}, "oldState": {"status": "NEW"}}
    )
    flow.publisher.publish(f"Workfront.{values['code']}.UPDATE", body)
    (got,) = endpoint.wait_for_count(1)
    assert (got.body, got.headers["authorization"]) == (
        body,
        "Bearer EauthTokenWorkfrontRocks1234_",
    )


def test_javas_bytes_create_list_and_delete_a_subscription(flow: Flow, receiver: Receiver) -> None:
    values = values_of(flow, receiver.endpoint("workfront").url)
    with raw_connection(flow.rest.base_url) as connection:
        client = WorkfrontClient(connection, values)
        target = client.create(recorded.JAVA_CREATE)
        first = client.send(recorded.JAVA_CLIENT_LIST, page="1")
        assert first.status_line == "HTTP/1.1 200 OK"
        assert list(first.json) == ["subscriptions", "meta"]
        pages = first.json["meta"]["page_count"]
        assert first.json["meta"] == {
            "page": 1,
            "page_count": pages,
            "limit": 1,
            "total_count": pages,
        }
        # The oldest come first.
        last = client.send(recorded.JAVA_CLIENT_LIST, page=str(pages))
        (listed,) = last.json["subscriptions"]
        assert (listed["id"], listed["authToken"]) == (target.rpartition("/")[2], MASKED)
        deleted = client.send(recorded.JAVA_DELETE, target=target)
        assert (deleted.status_line, deleted.body) == ("HTTP/1.1 200 OK", b"")
        gone = client.send(recorded.JAVA_DELETE, target=target)
        assert gone.status_line == "HTTP/1.1 404 Not Found"


def test_a_wrong_session_is_refused_in_each_header(flow: Flow, receiver: Receiver) -> None:
    values = values_of(flow, receiver.endpoint("workfront").url) | {"key": "wrong"}
    with raw_connection(flow.rest.base_url) as connection:
        client = WorkfrontClient(connection, values)
        for text in (recorded.CURL_CREATE, recorded.JAVA_CREATE, recorded.JAVA_CLIENT_LIST):
            refused = client.send(text, page="1")
            assert refused.status_line == "HTTP/1.1 401 Unauthorized"
            assert refused.headers["www-authenticate"].startswith("Bearer")
