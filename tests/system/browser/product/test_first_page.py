"""How much a browser transfers for the first page that it opens, and for the pages after it."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Response

from delivery.management.commands.provision import ADMINISTRATOR
from tests.support.product import Product
from tests.system.browser.visitor import ConsoleVisitor

MOST_BYTES = 300_000


class Transfers:
    """The answers that a browser of its own got, and their bytes; cached ones have none."""

    def __init__(self, browser: Browser, product: Product) -> None:
        self._context = browser.new_context(base_url=product.rest.base_url)
        page = self._context.new_page()
        self.visitor = ConsoleVisitor(page)
        self.answers: list[Response] = []
        self._bytes = 0
        page.on("response", self._keep)
        session = self._context.new_cdp_session(page)
        session.on("Network.loadingFinished", self._add)
        session.send("Network.enable")

    def _keep(self, answer: Response) -> None:
        self.answers.append(answer)

    def _add(self, event: dict[str, float]) -> None:
        self._bytes += int(event["encodedDataLength"])

    def take(self) -> int:
        """Return the bytes transferred since the last call, once the network is idle."""
        self.visitor.page.evaluate("document.fonts.ready")
        counted, self._bytes = self._bytes, 0
        return counted

    def close(self) -> None:
        self._context.close()


@pytest.fixture
def transfers(chromium: Browser, product: Product) -> Iterator[Transfers]:
    transfers = Transfers(chromium, product)
    yield transfers
    transfers.visitor.page.goto("about:blank")
    transfers.close()


def test_the_first_pages_are_light_and_later_ones_lighter(transfers: Transfers) -> None:
    page = transfers.visitor.page
    page.goto("/admin/")
    transfers.visitor.log_in(ADMINISTRATOR)
    page.wait_for_load_state()
    # The page to sign in and the overview with its chart, in a browser that never saw Inturn.
    cold = transfers.take()
    static = [answer for answer in transfers.answers if "/static/" in answer.url]
    assert static
    for answer in static:
        assert "immutable" in answer.headers["cache-control"], answer.url
        if answer.url.endswith((".css", ".js")):
            assert answer.headers["content-encoding"] in ("br", "gzip"), answer.url
    page.goto("/admin/")
    page.wait_for_load_state()
    warm = transfers.take()
    print(f"first pages: {cold / 1000:.0f} kB, the overview again: {warm / 1000:.0f} kB")
    assert cold <= MOST_BYTES
    assert warm <= MOST_BYTES / 10
