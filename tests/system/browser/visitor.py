"""A user of the console."""

from pathlib import Path

from playwright.sync_api import Page

SCREENSHOTS = Path(__file__).resolve().parents[3] / "screenshots"
PASSWORD = "a-long-pass-phrase"


class ConsoleVisitor:
    def __init__(self, page: Page) -> None:
        self.page = page

    def log_in(self, name: str) -> None:
        self.page.get_by_label("Username").fill(name)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Log in").click()
        self.page.get_by_role("heading", name="Blocked subscribers").wait_for()

    def photograph(self, name: str) -> None:
        """Save screenshots, wide and narrow, light and dark; no page is wider than its window.

        After a click that leads to another page, first expect something that only that page has.
        """
        self.page.wait_for_load_state()
        SCREENSHOTS.mkdir(exist_ok=True)
        for width in (1280, 390):
            self.page.set_viewport_size({"width": width, "height": 860})
            for scheme in ("light", "dark"):
                # Unfold reads the system's colour scheme only when a page is loaded.
                self.page.evaluate(
                    "dark => document.documentElement.classList.toggle('dark', dark)", scheme == "dark"
                )
                self.page.screenshot(path=SCREENSHOTS / f"{name}-{width}-{scheme}.png", full_page=True)
            assert not self._is_too_wide(), f"{name} is wider than {width} px"
        self.page.set_viewport_size({"width": 1280, "height": 860})
        self.page.evaluate("document.documentElement.classList.remove('dark')")

    def _is_too_wide(self) -> bool:
        root = "document.documentElement"
        return bool(self.page.evaluate(f"{root}.scrollWidth > {root}.clientWidth"))
