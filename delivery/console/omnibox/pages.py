"""The pages of the console by the menu's names, and the sections of the guide."""

from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from delivery.console.guide.search import search_guide
from delivery.console.navigation import sidebar
from delivery.console.omnibox.hits import HitSection, OmniboxHit

SHOWN_SECTIONS = 4
# Other words for a page than those of the menu.
_ALIASES = {
    "Overview": "home start dashboard traffic blocked",
    "Roles": "groups permissions rights",
    "Users": "people accounts passwords",
    "URL health": "urls circuit breaker frozen disabled",
    "Resubmissions": "cancellations bulk jobs resubmit cancel",
    "Payload views": "audit who read",
    "Configuration changes": "changes log audit history",
    "Pipeline runs": "exports verify reports spark",
    "Schedules": "cron pipeline",
    "Archive": "parquet files",
    "Statistics": "history charts percentiles",
    "Retention": "delete old",
    "Sign-ins": "logins lockout",
    "Keys": "api tokens",
    "Lanes": "queues blocked suspended",
    "Journal": "events log audit",
    "Guide": "help manual documentation",
}


def pages_in(text: str, request: HttpRequest) -> Iterator[HitSection]:
    """Yield the pages of the menu open to the user, and the guide's best sections."""
    words = text.casefold().split()
    if not words:
        return
    hits = [
        OmniboxHit(item["title"], group, str(item["link"]))
        for group, item in _items(request)
        if _matches(item["title"], words)
    ]
    if hits:
        yield HitSection("Pages", hits)
    sections = [
        OmniboxHit(
            hit.heading,
            f"Guide: {hit.page.title}",
            reverse("guide", args=[hit.page.name]) + (f"#{hit.anchor}" if hit.anchor else ""),
        )
        for hit in search_guide(text)[:SHOWN_SECTIONS]
    ]
    if sections:
        yield HitSection("Guide", sections)


def _items(request: HttpRequest) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the links of the user's menu, each with the title of the group."""
    for group in sidebar(request):
        for item in group["items"]:
            yield group.get("title", ""), item


def _matches(title: str, words: list[str]) -> bool:
    """Return whether each word begins a word of the title, or of other names."""
    known = f"{title} {_ALIASES.get(title, '')}".casefold().replace("-", " ").split()
    return all(any(keyword.startswith(word) for keyword in known) for word in words)
