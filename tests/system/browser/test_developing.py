"""A publisher's developer in a browser: the outcome of a message, from the first page on."""

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.test import Client
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from delivery.states import Status
from tests.support import factories
from tests.system.browser.visitor import ConsoleVisitor

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def dora(watched_page: Page, client: Client, live_server: LiveServer) -> ConsoleVisitor:
    """A developer of shop, on the first page; one of its messages was rejected."""
    shop = factories.publisher("shop")
    user = User.objects.create_user("dora", is_staff=True)
    user.groups.add(Group.objects.get(name="Developers"))
    shop.developers.add(user)
    subscription = factories.subscription("orders", event_type=factories.event_type("Shop.Order"))
    message = factories.message(
        b'{"order": 1005}', publisher=shop, event_type=subscription.event_type
    )
    factories.delivery(Status.REJECTED, message=message, subscription=subscription)
    client.force_login(user)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    watched_page.context.add_cookies(
        [{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": live_server.url}]
    )
    watched_page.goto("/admin/")
    return ConsoleVisitor(watched_page)


def test_a_developer_finds_out_why_a_message_failed_by_one_click(dora: ConsoleVisitor) -> None:
    menu = dora.page.locator("#nav-sidebar-apps")
    expect(menu.get_by_role("link")).to_contain_text(
        ["Overview", "My messages", "My deliveries", "Guide", "API"]
    )
    dora.photograph("developer-home", is_checked=True)
    failed = dora.page.get_by_role("region", name="Failed in the last 24 hours")
    failed.get_by_role("link", name="msg_").click()
    expect(dora.page.get_by_text("it matches")).to_be_visible()
    expect(dora.page.locator(".inturn-pretty")).to_contain_text('"order": 1005')
    dora.photograph("developer-message", is_checked=True)
    dora.page.get_by_role("navigation").get_by_role("link", name="My messages").first.click()
    expect(dora.page.locator("#result_list")).to_contain_text("Shop.Order")
    dora.photograph("developer-messages")
