"""The auditor finds and reads everything, and changes nothing."""

import secrets

import pytest
from playwright.sync_api import expect

from tests.support.product import Flow
from tests.support.receivers import Answer, Receiver
from tests.system.browser.product.conftest import Enter

MOVED = """
    UPDATE delivery_message SET published_at = published_at - interval '6 days'
    WHERE id = %s
"""


def number_of(id: str) -> int:
    return int(id.removeprefix("msg_"))


def test_finds_a_message_by_a_word_of_its_body_from_last_week_and_cannot_change_it(
    flow: Flow, enter: Enter, receiver: Receiver
) -> None:
    endpoint = receiver.endpoint("letters")
    endpoint.always(Answer(404))
    subscribed = flow.subscribe(endpoint)
    word = f"zebra{secrets.token_hex(4)}"
    id = flow.publish(f'{{"title": "The {word} is loose"}}'.encode())
    flow.publish(b'{"title": "Nothing special"}')
    assert flow.wait_until_settled(subscribed) == ["REJECTED", "REJECTED"]
    with flow.product.connect() as connection:
        connection.execute(MOVED, [number_of(id)])

    audrey = enter("audrey")
    page = audrey.page
    page.locator("nav").get_by_role("link", name="Messages").click()
    page.get_by_label("Body contains").fill(word)
    page.get_by_role("button", name="Search bodies and headers").click()
    expect(page.get_by_text(id)).to_have_count(0)
    page.get_by_role("link", name="last week").click()
    page.get_by_role("link", name=id).click()
    expect(page.locator("#pane")).to_contain_text(word)
    audrey.photograph("product-auditor-found")

    delivery = flow.delivery(subscribed, id)
    for address in (
        "/admin/",
        f"/admin/delivery/message/{number_of(id)}/change/",
        f"/admin/delivery/delivery/{delivery['id']}/change/",
        f"/admin/subscriptions/subscription/{subscribed.id}/",
        f"/admin/subscriptions/subscription/{subscribed.id}/change/",
        "/admin/subscriptions/subscription/",
        "/admin/delivery/delivery/?status=REJECTED",
    ):
        page.goto(address)
        page.get_by_role("heading").first.wait_for()
        # Auditors may only sign out and choose the theme.
        assert page.locator("[formaction]").count() == 0, address
        offered = page.locator("main a, main button, #content a").all_inner_texts()
        assert not [
            text
            for text in offered
            if text.startswith(("Resubmit", "Cancel", "Save", "Add", "Edit"))
        ]


@pytest.mark.slow
def test_an_auditors_posts_are_refused(flow: Flow, enter: Enter, receiver: Receiver) -> None:
    endpoint = receiver.endpoint("letters")
    endpoint.always(Answer(404))
    subscribed = flow.subscribe(endpoint)
    id = flow.publish()
    assert flow.wait_until_settled(subscribed) == ["REJECTED"]
    delivery = flow.delivery(subscribed, id)["id"]
    audrey = enter("audrey")
    token = audrey.page.locator("#console-post [name=csrfmiddlewaretoken]").input_value()
    for address in (
        f"subscriptions/subscription/{subscribed.id}/deactivate/",
        f"subscriptions/subscription/{subscribed.id}/change/",
        "subscriptions/subscription/add/",
        f"delivery/delivery/{delivery}/resubmit/",
        "delivery/resubmission/add/",
        "auth/user/add/",
    ):
        form: dict[str, str | float | bool] = {"csrfmiddlewaretoken": token, "status": "FAILED"}
        assert audrey.page.request.post(f"/admin/{address}", form=form).status == 403, address
    assert flow.statuses(subscribed) == ["REJECTED"]
    assert flow.rest.get(f"subscriptions/{subscribed.id}")["status"] == "ACTIVE"
