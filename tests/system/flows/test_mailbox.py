"""A mailbox in the started product: one application publishes, another fetches."""

from dataclasses import dataclass

from tests.support.product import Flow
from tests.support.receivers import Receiver
from tests.support.rest import Json, ProductClient
from tests.system.operation.installation import eventually


@dataclass(frozen=True, slots=True)
class Pulled:
    """A PULL subscription's subscriber, and its client."""

    name: str
    client: ProductClient

    def next(self, **query: int) -> list[Json]:
        answer = self.client.ask("POST", f"mailboxes/{self.name}/next", query=query)
        assert answer.status_code in {200, 204}, answer.text
        messages: list[Json] = answer.json()["messages"] if answer.content else []
        return messages

    def say(self, verb: str, *messages: Json) -> list[Json]:
        receipts = [message["receipt"] for message in messages]
        results: list[Json] = self.client.post(
            f"mailboxes/{self.name}/{verb}", {"receipts": receipts}
        )["results"]
        return results

    def status(self) -> Json:
        return self.client.get(f"mailboxes/{self.name}/status")


def pull(flow: Flow, name: str, **fields: object) -> Pulled:
    owner = flow.subscriber(name)
    values = {"name": name, "subscriber": owner, "event_type": flow.event_type, "mode": "PULL"}
    flow.rest.post("subscriptions", values | fields)
    key = flow.rest.post(f"subscribers/{owner}/keys")["key"]
    return Pulled(owner, ProductClient(flow.rest.base_url, key))


def test_each_message_is_handed_out_once_in_order_and_is_delivered_when_acknowledged(
    flow: Flow,
) -> None:
    mailbox = pull(flow, "reader")
    published = flow.publish_numbered(25)
    got: list[str] = []
    while messages := mailbox.next(max=10):
        assert all(result["ok"] for result in mailbox.say("ack", *messages))
        got += [message["id"] for message in messages]
    assert got == published
    assert mailbox.status()["available"] == mailbox.status()["in_flight"] == 0
    deliveries = flow.rest.get("deliveries", subscriber=mailbox.name, limit=50)["results"]
    assert {delivery["status"] for delivery in deliveries} == {"DELIVERED"}


def test_a_subscriber_can_have_a_mailbox_and_an_endpoint(flow: Flow, receiver: Receiver) -> None:
    mailbox = pull(flow, "both")
    pushed = flow.subscribe(receiver.endpoint("pushed"), subscriber=mailbox.name)
    published = flow.publish(b'{"n": 1}')
    pushed.endpoint.wait_for_last(published)
    (message,) = mailbox.next(max=10)
    assert (message["id"], message["body"]) == (published, {"n": 1})
    assert mailbox.say("ack", message)[0]["ok"]


def test_a_rejected_message_is_reported_as_a_failure(flow: Flow) -> None:
    mailbox = pull(flow, "choosy")
    reported = pull(
        flow, "reported", event_type="Inturn.Delivery.Failed", header_filter_string=mailbox.name
    )
    published = flow.publish()
    mailbox.say("reject", *mailbox.next())
    eventually(lambda: reported.status()["available"] == 1, "the failure is reported")
    (failure,) = reported.next()
    body = failure["body"]
    assert (body["message"], body["status"], body["attempts"]) == (published, "REJECTED", 1)
    assert body["attempt"]["outcome"] == "DECLINED"
    reported.say("ack", failure)
