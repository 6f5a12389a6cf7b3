"""One started product and its four users, who sign in by the form with their roles."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser

from delivery.management.commands.provision import ADMINISTRATOR
from tests.support.product import Flow, Product
from tests.system.browser.visitor import PASSWORD, ConsoleVisitor
from tests.system.browser.watching import watched

Enter = Callable[[str], ConsoleVisitor]
# The users, with the role that the administrator gives to each.
ROLES = {"sam": "Support", "audrey": "Auditors"}


@pytest.fixture(scope="package")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    product = Product(tmp_path_factory.mktemp("console"), INTURN_ADMIN_PASSWORD=PASSWORD)
    try:
        product.start()
        yield product
        assert product.stop()[0] == 0
    finally:
        product.kill_all()


@pytest.fixture(scope="package")
def staff(product: Product, chromium: Browser) -> None:
    """The administrator creates the other users' accounts, by the forms."""
    with watched(chromium, product.rest.base_url) as page:
        visitor = ConsoleVisitor(page)
        page.goto("/admin/")
        visitor.log_in(ADMINISTRATOR)
        for name, role in ROLES.items():
            page.goto("/admin/auth/user/add/")
            page.locator("#id_username").fill(name)
            page.locator("#id_password1").fill(PASSWORD)
            page.locator("#id_password2").fill(PASSWORD)
            page.get_by_role("button", name="Save", exact=True).click()
            page.get_by_label(f"{role}:").check()
            page.get_by_role("button", name="Save", exact=True).click()
            page.locator("#result_list").wait_for()


@pytest.fixture
def enter(product: Product, staff: None, chromium: Browser) -> Iterator[Enter]:
    """Sign in a user by name, in a browser of their own."""
    with ExitStack() as stack:

        def log_in(name: str) -> ConsoleVisitor:
            visitor = ConsoleVisitor(stack.enter_context(watched(chromium, product.rest.base_url)))
            visitor.page.goto("/admin/")
            visitor.log_in(name)
            return visitor

        yield log_in


@pytest.fixture
def flow(product: Product) -> Flow:
    return product.flow("Console")
