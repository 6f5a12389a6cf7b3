"""Recorded requests of the Event Queue's clients, replayed byte for byte to a started product."""

import base64
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit

import pytest

from tests.support.product import Flow
from tests.support.raw_http import RawAnswer, RawConnection, filled, raw_connection
from tests.system.flows import recorded_event_queue as recorded
from tests.system.flows.test_mailbox import pull

VENDOR_JSON = "application/vnd.comoyo.api-v20120202+json"
EVENT = (
    b'{"eventId": "e-1", "eventName": "user.UserAnnounce", "userId": 17, "name": "J\xc3\xbcrgen"}'
)


@dataclass(frozen=True, slots=True)
class RecordedClient:
    """Fills recorded requests in, and follows a link as it was answered."""

    base_url: str
    queue: str
    credentials: str

    def request(self, recorded_text: str, link: str = "") -> bytes:
        return filled(
            recorded_text,
            host=urlsplit(self.base_url).netloc,
            queue=self.queue,
            credentials=self.credentials,
            link=link,
        )

    def link_of(self, answer: RawAnswer) -> str:
        (link,) = answer.json["link"]
        assert list(link) == ["rel", "href"]
        assert link["rel"] == "ack"
        href: str = link["href"]
        return urljoin(f"/event/queue/{self.queue}/next", href)


def client_of(flow: Flow, *, written_as: str = "") -> RecordedClient:
    """Return the client of a new mailbox; `written_as` is the queue's colon in its requests."""
    mailbox = pull(flow, "recorded")
    queue = f"{flow.event_type}:queue"
    flow.rest.patch(f"subscribers/{mailbox.name}", {"queue_id": queue})
    credentials = base64.b64encode(f"{mailbox.name}:{mailbox.client.key}".encode()).decode()
    written = queue.replace(":", written_as) if written_as else quote(queue, safe="")
    return RecordedClient(flow.rest.base_url, written, credentials)


def statuses(flow: Flow) -> list[str]:
    found = flow.rest.get("deliveries", subscriber=f"{flow.event_type}.recorded")["results"]
    return [delivery["status"] for delivery in found]


def test_the_perl_clients_bytes_empty_a_queue(flow: Flow) -> None:
    client = client_of(flow)
    published = flow.publish(EVENT)
    with raw_connection(client.base_url) as connection:
        fetched = connection.send(client.request(recorded.PERL_NEXT))
        assert fetched.status_line == "HTTP/1.1 200 OK"
        # The client decodes only a media type that ends in "json".
        assert fetched.headers["content-type"] == VENDOR_JSON
        assert fetched.headers["cache-control"] == "no-store"
        assert list(fetched.json) == ["messageId", "receiptId", "event", "link"]
        assert fetched.json["messageId"] == published
        assert b'"event":' + EVENT in fetched.body
        # This client builds the address itself; it has to be the answered link.
        built = f"/event/queue/{client.queue}/ack?receiptId={quote(fetched.json['receiptId'])}"
        assert built == client.link_of(fetched)
        acknowledged = connection.send(client.request(recorded.PERL_ACK, built))
        assert (acknowledged.status_line, acknowledged.body) == ("HTTP/1.1 200 OK", b"{}")
        assert statuses(flow) == ["DELIVERED"]
        check_is_empty(connection.send(client.request(recorded.PERL_NEXT)))


@pytest.mark.parametrize("written_as", [":", "%3A", "%3a"])
def test_curls_bytes_follow_the_link_however_the_queue_is_written(
    flow: Flow, written_as: str
) -> None:
    client = client_of(flow, written_as=written_as)
    flow.publish(EVENT)
    with raw_connection(client.base_url) as connection:
        waiting = connection.send(client.request(recorded.CURL_STATUS))
        assert list(waiting.json) == ["available", "inFlight", "oldestSeconds"]
        assert (waiting.json["available"], waiting.json["inFlight"]) == (1, 0)
        fetched = connection.send(client.request(recorded.CURL_NEXT))
        assert fetched.headers["content-type"] == "application/json"
        link = client.link_of(fetched)
        for _ in range(2):
            acknowledged = connection.send(client.request(recorded.CURL_ACK, link))
            assert (acknowledged.status_line, acknowledged.body) == ("HTTP/1.1 200 OK", b"{}")
        check_is_empty(connection.send(client.request(recorded.CURL_NEXT)))
        empty = connection.send(client.request(recorded.CURL_STATUS))
        assert empty.body == b'{"available":0,"inFlight":0,"oldestSeconds":null}'


def test_javas_bytes_empty_a_queue(flow: Flow) -> None:
    client = client_of(flow)
    flow.publish(EVENT)
    with raw_connection(client.base_url) as connection:
        fetched = connection.send(client.request(recorded.JAVA_NEXT))
        assert fetched.status_line == "HTTP/1.1 200 OK"
        link = client.link_of(fetched)
        acknowledged = connection.send(client.request(recorded.JAVA_ACK, link))
        assert (acknowledged.status_line, acknowledged.body) == ("HTTP/1.1 200 OK", b"{}")
        check_is_empty(connection.send(client.request(recorded.JAVA_NEXT)))
    assert statuses(flow) == ["DELIVERED"]


@pytest.mark.parametrize(
    ("unasked", "asked"),
    [
        (recorded.CURL_NEXT_UNASKED, recorded.CURL_NEXT),
        (recorded.JAVA_CLIENT_NEXT_UNASKED, recorded.JAVA_CLIENT_NEXT),
    ],
    ids=["curl --anyauth", "java.net.http"],
)
def test_a_client_that_waits_for_a_challenge_gets_one(flow: Flow, unasked: str, asked: str) -> None:
    client = client_of(flow)
    published = flow.publish(EVENT)
    with raw_connection(client.base_url) as connection:
        challenge = connection.send(client.request(unasked))
        assert challenge.status_line == "HTTP/1.1 401 Unauthorized"
        assert challenge.headers["www-authenticate"] == 'Basic realm="inturn", charset="UTF-8"'
        fetched = connection.send(client.request(asked))
    assert (fetched.status_line, fetched.json["messageId"]) == ("HTTP/1.1 200 OK", published)


def test_refusals_are_what_a_client_can_read(flow: Flow) -> None:
    client = client_of(flow)
    flow.publish(EVENT)
    with raw_connection(client.base_url) as connection:
        fetched = connection.send(client.request(recorded.PERL_NEXT))
        link = client.link_of(fetched)
        end_lease(flow, fetched)
        again = connection.send(client.request(recorded.PERL_NEXT))
        assert again.json["messageId"] == fetched.json["messageId"]
        assert again.json["receiptId"] != fetched.json["receiptId"]
        expected = {link: "409 Conflict", link[:-1]: "404 Not Found"}
        for followed, status in expected.items():
            check_is_refused(connection, client.request(recorded.PERL_ACK, followed), status)
        stranger = client.request(recorded.PERL_NEXT).replace(b"%3Aqueue", b"%3Aother")
        check_is_refused(connection, stranger, "404 Not Found")
        acknowledged = connection.send(client.request(recorded.PERL_ACK, client.link_of(again)))
        assert acknowledged.status_line == "HTTP/1.1 200 OK"


def check_is_empty(answer: RawAnswer) -> None:
    assert (answer.status_line, answer.body) == ("HTTP/1.1 204 No Content", b"")
    assert "content-type" not in answer.headers


def check_is_refused(connection: RawConnection, request: bytes, status: str) -> None:
    answer = connection.send(request)
    assert answer.status_line == f"HTTP/1.1 {status}"
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["detail"]


def end_lease(flow: Flow, fetched: RawAnswer) -> None:
    with flow.product.connect() as connection:
        connection.execute(
            "UPDATE delivery_waiting SET lease_expires_at = now() - interval '1 second' "
            "WHERE message_id = %s",
            [int(fetched.json["messageId"].removeprefix("msg_"))],
        )
