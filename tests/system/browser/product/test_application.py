"""The application publishes and fetches by REST; REST and the console show the same results."""

import pytest
from playwright.sync_api import expect

from tests.support.product import Flow
from tests.support.receivers import Receiver
from tests.support.rest import ProductClient
from tests.system.browser.product.conftest import Enter
from tests.system.operation.installation import eventually


def test_an_application_publishes_and_reads_the_outcome(
    flow: Flow, enter: Enter, receiver: Receiver
) -> None:
    flow.subscribe(receiver.endpoint("orders"))
    id = flow.publish(b'{"order": 4711}')
    receiver.endpoint("orders").wait_for_count(1)
    eventually(
        lambda: (
            [d["status"] for d in flow.publisher.get(f"messages/{id}")["deliveries"]]
            == ["DELIVERED"]
        ),
        "the publisher is notified that it was delivered",
    )
    (delivery,) = flow.publisher.get(f"messages/{id}")["deliveries"]
    assert [attempt["status_code"] for attempt in delivery["attempts"]] == [200]

    sam = enter("sam")
    sam.page.goto(f"/admin/delivery/message/{id}/change/")
    expect(sam.page.locator(".inturn-pretty").last).to_contain_text('"order": 4711')
    sam.page.get_by_label("Raw").last.check()
    expect(sam.page.get_by_text('{"order": 4711}', exact=True)).to_be_visible()
    expect(sam.page.get_by_text("DELIVERED").first).to_be_visible()
    sam.photograph("product-application-message")


@pytest.mark.slow
def test_an_application_fetches_and_acknowledges_its_mailbox(flow: Flow, enter: Enter) -> None:
    depot = flow.subscriber("depot")
    fields = {"name": "parcels", "subscriber": depot, "event_type": flow.event_type, "mode": "PULL"}
    flow.rest.post("subscriptions", fields)
    fetching = ProductClient(flow.rest.base_url, flow.rest.post(f"subscribers/{depot}/keys")["key"])
    id = flow.publish(b'{"parcel": 12}')
    (message,) = fetching.post(f"mailboxes/{depot}/next")["messages"]
    assert (message["id"], message["body"]) == (id, {"parcel": 12})
    (result,) = fetching.post(f"mailboxes/{depot}/ack", {"receipts": [message["receipt"]]})[
        "results"
    ]
    assert result["ok"]

    sam = enter("sam")
    sam.page.goto(f"/admin/delivery/delivery/?subscriber={depot}")
    expect(sam.page.locator("#result_list tbody tr")).to_have_count(1)
    expect(sam.page.locator("#result_list")).to_contain_text("DELIVERED")
