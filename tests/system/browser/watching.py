"""A monitored page: its console log, its error answers, and the hosts it calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page

# htmx logs these when a page is left while a request is under way, as people do.
LEFT = {"htmx:sendAbort", "htmx:afterRequest"}


@contextmanager
def watched(browser: Browser, base_url: str) -> Iterator[Page]:
    """Yield a page; fail if it logged an error, got an error answer, or called another host."""
    # Without motion: a browser without a graphics card draws each step of it by the processor.
    context = browser.new_context(
        base_url=base_url, viewport={"width": 1280, "height": 860}, reduced_motion="reduce"
    )
    page = context.new_page()
    complaints: list[str] = []
    hosts: set[str | None] = set()
    page.on(
        "console",
        lambda line: complaints.append(line.text) if line.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "response", lambda answer: complaints.append(answer.url) if answer.status >= 400 else None
    )
    context.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
    yield page
    # Left before the server ends: otherwise the overview's last poll would get no answer.
    page.goto("about:blank")
    context.close()
    # pytest explains assertions in modules of tests only.
    complaints = [line for line in complaints if line not in LEFT]
    assert complaints == [], complaints
    assert hosts <= {urlsplit(base_url).hostname, "", None}
