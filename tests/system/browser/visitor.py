"""A user of the console.

With INTURN_TEST_SCREENSHOTS, the name of a folder, the tests save screenshots for people to look
at.
"""

import os
from pathlib import Path

from playwright.sync_api import Page

SCREENSHOTS = os.environ.get("INTURN_TEST_SCREENSHOTS")
PASSWORD = "a-long-pass-phrase"
# A frame is drawn before the second call: until then the layout is that of the former window.
_DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


class ConsoleVisitor:
    def __init__(self, page: Page) -> None:
        self.page = page

    def log_in(self, name: str) -> None:
        self.page.get_by_label("Username").fill(name)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Log in").click()
        self.page.get_by_role("heading", name="Blocked subscribers").wait_for()

    def photograph(self, name: str) -> None:
        """Insist that the page fits its window, wide or narrow; save screenshots if asked.

        After a click that leads to another page, first expect something that only that page has.
        """
        self.page.wait_for_load_state()
        for width in (1280, 390):
            self.page.set_viewport_size({"width": width, "height": 860})
            if SCREENSHOTS:
                self._save(Path(SCREENSHOTS, f"{name}-{width}"))
            self.page.evaluate(_DRAWN)
            assert not self._is_too_wide(), f"{name} is wider than {width} px"
        self.page.set_viewport_size({"width": 1280, "height": 860})

    def _save(self, path: Path) -> None:
        """Save the page in both colour schemes, which Unfold reads only when a page is loaded."""
        path.parent.mkdir(exist_ok=True)
        for scheme in ("light", "dark"):
            self.page.evaluate(
                "dark => document.documentElement.classList.toggle('dark', dark)", scheme == "dark"
            )
            self.page.screenshot(path=f"{path}-{scheme}.png", full_page=True)
        self.page.evaluate("document.documentElement.classList.remove('dark')")

    def _is_too_wide(self) -> bool:
        root = "document.documentElement"
        return bool(self.page.evaluate(f"{root}.scrollWidth > {root}.clientWidth"))
