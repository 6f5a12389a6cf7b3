"""Support: an endpoint goes down, and failed deliveries are resubmitted."""

import time

import pytest
from playwright.sync_api import expect

from tests.support.product import Flow
from tests.support.receivers import Answer, Receiver
from tests.system.browser.product.conftest import Enter
from tests.system.operation.installation import eventually

# Promised are 2 s, and the measured time is printed. A loaded machine gets some grace.
SOON_SECONDS = 10.0
# One attempt: a delivery that fails with a server error is FAILED at once.
ONCE = {"on_server_error": "IN_PLACE", "max_attempts": 1, "when_used_up": "FAIL"}


def test_one_click_makes_the_other_subscription_flow(
    flow: Flow, enter: Enter, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    sam = enter("sam")
    with Receiver() as broken:
        crm = flow.subscriber("crm")
        down = flow.subscribe(broken.endpoint("down"), subscriber=crm)
        well = flow.subscribe(receiver.endpoint("well"), subscriber=crm)
        broken.refuse_connections()
        ids = flow.publish_numbered(3)
        flow.wait_until_blocked(down)

        row = sam.page.locator("tr", has_text=crm)
        remedy = sam.page.locator("tr.inturn-remedy", has_text=f"other subscription of {crm}")
        expect(row.first).to_contain_text("refused")
        expect(remedy).to_contain_text(
            f"Resumes 1 other subscription of {crm} (3 waiting messages)."
        )
        sam.photograph("product-support-blocked")
        clicked = time.monotonic()
        remedy.get_by_role("button", name="Hold down", exact=True).click()
        received = well.endpoint.wait_for_count(3, seconds=SOON_SECONDS)
        with capsys.disabled():
            print(
                "\nafter the click the other subscription flows within "
                f"{received[-1].at - clicked:.2f} s"
            )
        assert [request.id for request in received] == ids
        expect(sam.page.get_by_text(f"{crm}/down is HELD")).to_be_visible()
        expect(remedy).to_have_count(0)

        broken.accept_connections()
        sam.page.get_by_role("button", name="Undo").click()
        expect(sam.page.get_by_text("is ACTIVE again")).to_be_visible()
        assert [request.id for request in down.endpoint.wait_for_count(3)] == ids


def test_failed_deliveries_are_counted_resubmitted_and_watched(
    flow: Flow, enter: Enter, receiver: Receiver
) -> None:
    policy = flow.rest.post("policies", {"name": flow.event_type, **ONCE})["name"]
    endpoint = receiver.endpoint("once")
    endpoint.always(Answer(500))
    subscribed = flow.subscribe(endpoint, policy=policy)
    ids = flow.publish_numbered(6)
    eventually(lambda: flow.statuses(subscribed) == ["FAILED"] * 6, "all of them are FAILED")
    endpoint.always(Answer(200))

    sam = enter("sam")
    page = sam.page
    page.goto(f"/admin/delivery/delivery/?status=FAILED&subscription={subscribed.id}")
    page.get_by_role("link", name="Resubmit all matching").click()
    expect(page.get_by_text("6 deliveries would be resubmitted")).to_be_visible()
    sam.photograph("product-support-preview")
    page.get_by_label("Deliveries per second").fill("3")
    page.get_by_role("button", name="Resubmit 6").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    address = page.url
    # The job continues when the page is closed.
    page.goto("/admin/")
    again = endpoint.wait_for_count(12)[6:]
    assert [request.id for request in again] == ids
    page.goto(address)
    expect(page.get_by_text("DONE")).to_be_visible()
    expect(page.get_by_text("6 sent again.")).to_be_visible()
    sam.photograph("product-support-done")
    assert flow.wait_until_settled(subscribed) == ["DELIVERED"] * 6
