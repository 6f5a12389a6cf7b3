"""The administrator sets up a flow by forms, and the first message goes through it."""

import secrets

from playwright.sync_api import Page, expect
from standardwebhooks import Webhook

from delivery.management.commands.provision import ADMINISTRATOR
from tests.support.product import Product
from tests.support.receivers import Receiver
from tests.support.rest import ProductClient
from tests.system.browser.product.conftest import Enter
from tests.system.browser.visitor import ConsoleVisitor
from tests.system.operation.installation import eventually

FILTER = "$$->'Body'->'project'->>'id' = 'proj1008'"
BODY = b'{"project": {"id": "proj1008"}, "title": "The door does not close"}'


def save(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()


def add_named(visitor: ConsoleVisitor, kind: str, name: str) -> None:
    visitor.page.goto(f"/admin/subscriptions/{kind}/add/")
    visitor.page.locator("#id_name").fill(name)
    save(visitor.page)
    expect(visitor.page.get_by_text("was added successfully")).to_be_visible()


def choose(page: Page, field: str, choice: str) -> None:
    page.locator(f".field-{field} .select2-selection").click()
    page.locator(".select2-search__field").fill(choice)
    page.locator(".select2-results__option", has_text=choice).click()


def test_sets_up_a_flow_and_sees_its_first_message_delivered(
    product: Product, enter: Enter, receiver: Receiver
) -> None:
    name = f"Door.Report.{secrets.token_hex(3)}"
    visitor, page = (admin := enter(ADMINISTRATOR)), admin.page
    add_named(visitor, "eventtype", name)
    add_named(visitor, "publisher", name)
    page.goto("/admin/subscriptions/publisher/")
    page.get_by_role("link", name=name).click()
    page.get_by_role("link", name=f"New key for {name}").click()
    save(page)
    key = page.locator("#secret").inner_text()

    add_named(visitor, "subscriber", name)
    endpoint = receiver.endpoint("doors")
    page.goto("/admin/subscriptions/subscription/add/")
    page.locator("#id_name").fill("doors")
    choose(page, "subscriber", name)
    choose(page, "event_type", name)
    page.locator("#id_endpoint").fill(endpoint.url)
    page.locator("#id_filter").fill(FILTER)
    save(page)
    secret = page.locator("#secret").inner_text()

    publisher = ProductClient(product.rest.base_url, key)
    published = publisher.publish(name, BODY)
    assert published["deliveries"] == 1
    (received,) = endpoint.wait_for_count(1)
    assert Webhook(secret).verify(received.body, dict(received.headers)) == {
        "project": {"id": "proj1008"},
        "title": "The door does not close",
    }
    eventually(
        lambda: (
            publisher.get(f"messages/{published['id']}")["deliveries"][0]["status"] == "DELIVERED"
        ),
        "the answer is settled",
    )
    page.goto(f"/admin/delivery/message/?event_type={name}")
    expect(page.locator("#result_list")).to_contain_text(published["id"])
    expect(page.locator("#result_list")).to_contain_text("DELIVERED")
    visitor.photograph("product-administrator")
