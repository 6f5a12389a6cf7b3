"""A real browser on the real console: every test checks its console log and the hosts it calls."""

import os
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, Page, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from tests.conftest import QUICK
from tests.support.surroundings import CHROMIUM, HOW_TO_GET_CHROMIUM
from tests.system.browser.visitor import PASSWORD, ConsoleVisitor
from tests.system.browser.watching import watched

# As long as other waits for a page; on a busy machine Playwright's own five seconds are not enough.
expect.set_options(timeout=30_000)


@pytest.fixture(scope="session", autouse=True)
def _folder_of_static_files() -> None:
    """Create the folder that `prepare` fills: whitenoise needs it."""
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)


@pytest.fixture(scope="session", autouse=True)
def _check_every_page(request: pytest.FixtureRequest) -> None:
    """Check the accessibility of every page that is photographed, but in quick runs of few."""
    ConsoleVisitor.checks_all = request.config.option.markexpr != QUICK


@pytest.fixture(scope="package")
def chromium(django_db_setup: None) -> Iterator[Browser]:
    """Start Debian's chromium.

    The plug-in's fixture is not used: its event loop would outlive these tests.
    """
    if CHROMIUM is None:
        pytest.skip(f"no chromium: {HOW_TO_GET_CHROMIUM}")
    # Playwright runs an event loop on this thread, so Django would refuse database queries.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    try:
        with sync_playwright() as playwright:
            yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
    finally:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def watched_page(
    chromium: Browser, live_server: LiveServer, transactional_db: None
) -> Iterator[Page]:
    """Open a page on the console of this process."""
    with watched(chromium, live_server.url) as page:
        yield page


@pytest.fixture
def administrator(transactional_db: None) -> User:
    return User.objects.create_superuser("ann", password=PASSWORD)


@pytest.fixture
def ann(
    watched_page: Page, administrator: User, client: Client, live_server: LiveServer
) -> ConsoleVisitor:
    """The administrator, signed in and on the overview."""
    client.force_login(administrator)
    session = {
        "name": settings.SESSION_COOKIE_NAME,
        "value": client.cookies[settings.SESSION_COOKIE_NAME].value,
    }
    watched_page.context.add_cookies(
        [session | {"url": live_server.url}]  # type: ignore[list-item]
    )
    watched_page.goto("/admin/")
    return ConsoleVisitor(watched_page)
