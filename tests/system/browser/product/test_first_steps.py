"""A newcomer and a fresh installation as `up` starts it: the first delivery, counted in clicks."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from delivery.management.commands.provision import ADMINISTRATOR
from tests.support.product import Product
from tests.support.rest import RestRefusedError
from tests.system.browser.visitor import PASSWORD, ConsoleVisitor
from tests.system.browser.watching import watched

MOST_CLICKS = 4
# Counts the actions of the mouse, across the pages of this tab.
COUNTER = """
addEventListener("click", (event) => {
  if (event.isTrusted) sessionStorage.clicks = Number(sessionStorage.clicks || 0) + 1;
}, true);
"""


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Product]:
    """A product that may send to no network of this machine."""
    product = Product(
        tmp_path,
        INTURN_ADMIN_PASSWORD=PASSWORD,
        # Addresses for documentation, which nobody has.
        INTURN_ALLOWED_NETWORKS="192.0.2.0/24",
    )
    try:
        product.start()
        yield product
        assert product.stop()[0] == 0
    finally:
        product.kill_all()


@pytest.fixture
def newcomer(fresh: Product, chromium: Browser) -> Iterator[ConsoleVisitor]:
    with watched(chromium, fresh.rest.base_url) as page:
        page.add_init_script(COUNTER)
        visitor = ConsoleVisitor(page)
        page.goto("/admin/")
        visitor.log_in(ADMINISTRATOR)
        page.evaluate("sessionStorage.clicks = 0")
        yield visitor


def clicks(page: Page) -> int:
    return int(page.evaluate("sessionStorage.clicks"))


def test_a_newcomer_sees_the_first_message_delivered_and_then_one_retried(
    newcomer: ConsoleVisitor,
) -> None:
    page = newcomer.page
    _publish_the_first_message(newcomer)
    assert 1 <= clicks(page) <= MOST_CLICKS

    page.goto("/admin/")
    page.get_by_role("heading", name="Stopped subscribers").wait_for()
    expect(page.get_by_role("heading", name="First steps")).to_have_count(0)

    page.go_back()
    page.locator("#trace").get_by_role("link", name="See its requests").click()
    expect(page.get_by_text("signature valid")).to_be_visible()
    expect(page.locator("#opened")).to_contain_text('"text": "Hello, world"')
    newcomer.photograph("built-in-receiver")

    _switch_the_answer(page, "connection closed")
    _publish_to_an_endpoint_that_recovers(newcomer)


def test_no_other_page_of_the_web_server_is_an_endpoint(fresh: Product) -> None:
    flow = fresh.flow("Guarded")
    subscriber = flow.subscriber("loop")
    for url in (
        f"{fresh.rest.base_url}/admin/",
        f"http://localhost:{fresh.port}/receiver/{'x' * 32}",
    ):
        row = {
            "name": "loop",
            "subscriber": subscriber,
            "event_type": flow.event_type,
            "endpoint": url,
        }
        with pytest.raises(RestRefusedError, match="is refused"):
            fresh.rest.post("subscriptions", row)


def _publish_the_first_message(newcomer: ConsoleVisitor) -> None:
    page = newcomer.page
    newcomer.photograph("first-steps")
    page.get_by_role("button", name="Create all three for me").click()
    expect(page.get_by_label("Body")).to_have_value(
        '{\n  "text": "Hello, world",\n  "language": "en"\n}'
    )
    newcomer.photograph("publish")
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.locator("#trace").get_by_text("DELIVERED")).not_to_have_count(0)
    newcomer.photograph("publish-delivered")


def _publish_to_an_endpoint_that_recovers(newcomer: ConsoleVisitor) -> None:
    """Publish from the event type's page, and see the trace follow the endpoint."""
    page = newcomer.page
    page.goto("/admin/subscriptions/eventtype/")
    page.get_by_role("link", name="Example.Greeting", exact=True).click()
    page.get_by_role("link", name="Publish a message").click()
    page.get_by_role("button", name="Publish", exact=True).click()
    trace = page.locator("#trace")
    expect(trace.get_by_text("UNREACHABLE").first).to_be_visible()
    newcomer.photograph("publish-unreachable")
    # In a second tab, while the trace goes on.
    other = page.context.new_page()
    _switch_the_answer(other, "204: delivered")
    expect(trace.get_by_text("DELIVERED")).not_to_have_count(0)
    other.close()


def _switch_the_answer(page: Page, answer: str) -> None:
    page.goto("/admin/delivery/builtinreceiver/")
    page.get_by_role("link", name="example", exact=True).click()
    page.get_by_role("button", name=answer).click()
    expect(page.get_by_text(f"From now on it answers: {answer}.")).to_be_visible()
