"""Headers of messages reach endpoints, in each way of sending of the started product."""

import hashlib
import hmac
import secrets

import pytest
import requests

from config.version import version
from tests.support.product import Flow, Product
from tests.support.receivers import OK, Answer, Receiver
from tests.support.receivers.received import Received
from tests.system.flows.webhooks import MADE, read
from tests.system.operation.installation import eventually

SOON = {"blocks_when_overloaded": False, "retry_seconds": 0.3, "max_attempts": 5}
SECRET = b"It's a Secret to Everybody"


def signed(body: bytes) -> str:
    """Return GitHub's X-Hub-Signature-256."""
    return f"sha256={hmac.new(SECRET, body, hashlib.sha256).hexdigest()}"


def publish(flow: Flow, body: bytes, **headers: str) -> requests.Response:
    given = {"Content-Type": "application/json"} | {
        name.replace("_", "-"): v for name, v in headers.items()
    }
    answer = flow.publisher.ask(
        "POST", f"events/{flow.event_type}/messages", body=body, headers=given
    )
    assert answer.ok, answer.text
    return answer


def github(body: bytes) -> dict[str, str]:
    return {
        "X_GitHub_Event": "push",
        "X_Hub_Signature_256": signed(body),
        "User_Agent": "GitHub-Hookshot/044aadd",
    }


def verify(got: Received) -> None:
    assert got.headers["X-GitHub-Event"] == "push"
    assert got.headers["X-Hub-Signature-256"] == signed(got.body)


def test_the_body_of_a_github_webhook_verifies_against_its_own_signature(
    flow: Flow, receiver: Receiver
) -> None:
    bodies = [webhook.raw for webhook in read(MADE) if webhook.area == "Push"][:5]
    of = flow.subscribe(receiver.endpoint("hook"), forward_headers=["X-GitHub-*", "X-Hub-*"])
    without = flow.subscribe(receiver.endpoint("without"))
    for body in bodies:
        publish(flow, body, **github(body))
    got = of.endpoint.wait_for_count(len(bodies))
    assert [request.body for request in got] == bodies
    for request in got:
        verify(request)
        assert request.headers["User-Agent"] == f"Inturn/{version()}"
    for request in without.endpoint.wait_for_count(len(bodies)):
        assert not {"X-GitHub-Event", "X-Hub-Signature-256"} & set(request.headers)


def test_retries_and_resubmissions_send_them_too(flow: Flow, receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    hook.next(Answer(503), Answer(503), Answer(404))
    policy = f"soon-{secrets.token_hex(4)}"
    flow.rest.post(
        "policies", {"name": policy, "copy_of": "teamforge", "on_unavailable": "RETRY_LANE", **SOON}
    )
    of = flow.subscribe(hook, forward_headers=["*"], policy=policy)
    body = b'{"ref": "refs/heads/main"}'
    id = publish(flow, body, **github(body)).json()["id"]
    eventually(
        lambda: flow.delivery(of, id)["status"] == "REJECTED", "the third attempt is rejected"
    )
    flow.rest.post(f"deliveries/{flow.delivery(of, id)['id']}/resubmit")
    for request in hook.wait_for_count(4):
        verify(request)
        assert request.headers["User-Agent"] == "GitHub-Hookshot/044aadd"


def test_what_is_added_to_a_subscription_is_sent_from_then_on(
    flow: Flow, receiver: Receiver
) -> None:
    of = flow.subscribe(receiver.endpoint("hook"))
    publish(flow, b"{}", **github(b"{}"))
    of.endpoint.wait_for_count(1)
    flow.rest.patch(f"subscriptions/{of.id}", {"forward_headers": ["x-github-event"]})

    def arrives() -> bool:
        count = len(of.endpoint.received) + 1
        publish(flow, b"{}", **github(b"{}"))
        return "X-GitHub-Event" in of.endpoint.wait_for_count(count)[-1].headers

    eventually(arrives, "the header is sent")


def test_each_endpoint_of_a_queue_group_gets_what_its_subscription_sends(
    product: Product, receiver: Receiver
) -> None:
    flow = product.flow("Jobs", kind="QUEUE", forward_headers=["x-github-event"])
    first, second = receiver.endpoint("first"), receiver.endpoint("second")
    for hook in (first, second):
        hook.always(Answer(500))
    flow.subscribe(first)
    flow.subscribe(second, forward_headers=[])
    publish(flow, b"{}", **github(b"{}"))
    assert first.wait_for_count(1)[0].headers["X-GitHub-Event"] == "push"
    assert "X-GitHub-Event" not in second.wait_for_count(1)[0].headers
    for hook in (first, second):
        hook.always(OK)


def test_the_endpoint_of_a_sync_call_gets_them_and_the_callers_second_credential(
    product: Product, receiver: Receiver
) -> None:
    flow = product.flow("Asked", kind="SYNC")
    of = flow.subscribe(
        receiver.endpoint("rules"), forward_headers=["x-*"], forward_authorization=True
    )
    answer = publish(flow, b"{}", **github(b"{}"), X_Forward_Authorization="Bearer of-the-user")
    (got,) = of.endpoint.received
    assert got.headers["X-GitHub-Event"] == "push"
    assert got.headers["Authorization"] == "Bearer of-the-user"
    assert "X-Forward-Authorization" not in got.headers
    stored = flow.rest.get(f"messages/{answer.headers['inturn-message']}")
    assert "of-the-user" not in str(stored)
    assert "x-forward-authorization" not in stored["headers"]
    publish(flow, b"{}")
    assert "Authorization" not in of.endpoint.received[-1].headers


def test_a_second_credential_is_handed_on_to_nobody_else(
    product: Product, receiver: Receiver
) -> None:
    flow = product.flow("Asked", kind="SYNC")
    of = flow.subscribe(receiver.endpoint("rules"), forward_headers=["*"])
    publish(flow, b"{}", X_Forward_Authorization="Bearer of-the-user")
    (got,) = of.endpoint.received
    assert "of-the-user" not in str(got.headers)


@pytest.mark.parametrize("value", ["Müller, 日本", "naïve café"])
def test_a_value_beyond_ascii_arrives_as_utf_8(flow: Flow, receiver: Receiver, value: str) -> None:
    of = flow.subscribe(receiver.endpoint("hook"), forward_headers=["x-author"])
    flow.publisher.publish_batch(
        [{"event": flow.event_type, "body": {}, "headers": {"X-Author": value}}]
    )
    (got,) = of.endpoint.wait_for_count(1)
    assert got.headers["X-Author"] == value


def test_the_attempt_says_which_did_not_fit(flow: Flow, receiver: Receiver) -> None:
    of = flow.subscribe(receiver.endpoint("hook"), forward_headers=["x-*"])
    id = publish(flow, b"{}", X_A="a" * 7000, X_B="b" * 7000, X_C="c" * 3000, X_D="d").json()["id"]
    (got,) = of.endpoint.wait_for_count(1)
    assert {"x-a", "x-b", "x-d"} <= set(got.headers)
    assert "x-c" not in got.headers
    eventually(lambda: flow.delivery(of, id)["status"] == "DELIVERED", "it is DELIVERED")
    (attempt,) = flow.delivery(of, id)["attempts"]
    assert "without headers of the message: x-c (at most" in attempt["error"]


def test_a_subscribers_headers_reach_all_its_endpoints_and_a_change_does_within_seconds(
    flow: Flow, receiver: Receiver
) -> None:
    subscriber = flow.subscriber("shared", headers={"X-Key": "one", "X-Team": "a"})
    of = flow.subscribe(receiver.endpoint("hook"), subscriber=subscriber)
    own = flow.subscribe(receiver.endpoint("own"), subscriber=subscriber, headers={"x-team": "b"})
    flow.publish()
    (first,) = of.endpoint.wait_for_count(1)
    assert (first.headers["X-Key"], first.headers["X-Team"]) == ("one", "a")
    (second,) = own.endpoint.wait_for_count(1)
    assert (second.headers["X-Key"], second.headers["X-Team"]) == ("one", "b")
    flow.rest.patch(f"subscribers/{subscriber}", {"headers": {"X-Key": "two"}})

    def is_changed() -> bool:
        count = len(of.endpoint.received) + 1
        flow.publish()
        last = of.endpoint.wait_for_count(count)[-1]
        return last.headers["X-Key"] == "two" and "X-Team" not in last.headers

    eventually(is_changed, "the new headers are sent")
