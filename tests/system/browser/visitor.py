"""A user of the console.

With INTURN_TEST_SCREENSHOTS, the name of a folder, the tests save screenshots for people to look
at.
"""

import os
from pathlib import Path

from playwright.sync_api import Page

from tests.system.browser.accessibility import grave_findings, unknown_icons

SCREENSHOTS = os.environ.get("INTURN_TEST_SCREENSHOTS")
PASSWORD = "a-long-pass-phrase"
WIDE, NARROW = 1280, 390
# A frame is drawn before the second call: until then the layout is that of the former window.
_DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


class ConsoleVisitor:
    # Whether every photograph includes axe's check, wide and light, narrow and dark; `--full` sets
    # it. Each takes a second of a processor, so all four are for photographs that ask for it.
    checks_all = False

    def __init__(self, page: Page) -> None:
        self.page = page

    def log_in(self, name: str) -> None:
        self.page.get_by_label("Username").fill(name)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Log in").click()
        self.page.get_by_role("heading", name="Stopped subscribers").wait_for()

    def photograph(self, name: str, *, is_checked: bool = False) -> None:
        """Insist that the page fits its window, wide or narrow; save screenshots if asked.

        If it is checked, insist also that axe finds nothing grave, in both colour schemes.

        After a click that leads to another page, first expect something that only that page has.
        """
        self.page.wait_for_load_state()
        for width in (WIDE, NARROW):
            self.page.set_viewport_size({"width": width, "height": 860})
            if SCREENSHOTS:
                self._save(Path(SCREENSHOTS, f"{name}-{width}"))
            self.page.evaluate(_DRAWN)
            assert not self._is_too_wide(), f"{name} is wider than {width} px"
            assert unknown_icons(self.page) == [], "add them to static/fonts/icons.txt"
            if is_checked:
                self._insist_on_accessibility(f"{name}, {width} px", "dark", "light")
            elif self.checks_all:
                scheme = "light" if width > NARROW else "dark"
                self._insist_on_accessibility(f"{name}, {width} px", scheme)
        self.page.set_viewport_size({"width": WIDE, "height": 860})

    def _insist_on_accessibility(self, name: str, *schemes: str) -> None:
        for scheme in schemes:
            self._switch_to(scheme)
            found = grave_findings(self.page)
            assert found == [], "\n".join([f"{name}, {scheme}:", *found])

    def _switch_to(self, scheme: str) -> None:
        """Show the page in the colour scheme, which Unfold reads only when a page is loaded."""
        self.page.evaluate(
            "dark => document.documentElement.classList.toggle('dark', dark)", scheme == "dark"
        )

    def _save(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        for scheme in ("dark", "light"):
            self._switch_to(scheme)
            self.page.screenshot(path=f"{path}-{scheme}.png", full_page=True)

    def _is_too_wide(self) -> bool:
        root = "document.documentElement"
        return bool(self.page.evaluate(f"{root}.scrollWidth > {root}.clientWidth"))
