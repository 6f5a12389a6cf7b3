"""Faults of a page for people who use it without a mouse, without seeing it, or see it badly."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# Of axe's four impacts. Rules of lesser impact are advice, which axe itself calls so.
GRAVE = ("serious", "critical")
_AXE = Axe()
# The names that are drawn as text, because the font of icons has none of that name.
_UNKNOWN_ICONS = """
async () => {
  await document.fonts.ready;
  return [...document.querySelectorAll(".material-symbols-outlined")].filter((icon) => {
    const text = document.createRange();
    text.selectNodeContents(icon);
    const { width } = text.getBoundingClientRect();
    return width > 1.5 * parseFloat(getComputedStyle(icon).fontSize);
  }).map((icon) => icon.textContent.trim());
}
"""


def unknown_icons(page: Page) -> list[str]:
    """Return the names of icons that the page shows as words."""
    found: list[str] = page.evaluate(_UNKNOWN_ICONS)
    return found


def grave_findings(page: Page) -> list[str]:
    """Return axe's serious and critical findings, a line for each element."""
    found: list[dict[str, Any]] = _AXE.run(page).response["violations"]
    return [
        f"{rule['id']}: {node['html'][:200]} ({' / '.join(map(str, node['target']))})"
        for rule in found
        if rule["impact"] in GRAVE
        for node in rule["nodes"]
    ]
