"""The guide: pages of templates/guide/, written in Markdown, for everybody who may sign in to the console."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from markdown_it import MarkdownIt

HOW_TO: Final = "How to"
REFERENCE: Final = "Reference"
EXPLANATION: Final = "Explanation"


@dataclass(frozen=True, slots=True)
class GuidePage:
    """A page of the guide; its text is `templates/guide/<name>.md`, which is a template too."""

    name: str
    title: str
    section: str
    about: str


# Pages of one section stand together.
_PAGES = (
    GuidePage(
        "subscriptions",
        "Set up a subscription",
        HOW_TO,
        "Who wants what, where to, and what a receiver gets.",
    ),
    GuidePage(
        "failures",
        "Find and mend failures",
        HOW_TO,
        "How failures are reported, and what support does about them.",
    ),
    GuidePage(
        "operating",
        "Operate and grow",
        HOW_TO,
        "More machines, a PostgreSQL of your own, poolers, upgrades, commands.",
    ),
    GuidePage(
        "moving-in",
        "Come from webMethods or the Event Queue",
        HOW_TO,
        "Their terms and calls beside those of Inturn.",
    ),
    GuidePage("words", "Words", REFERENCE, "Each term, with what it means."),
    GuidePage("filters", "Filters", REFERENCE, "The language that chooses messages by their body."),
    GuidePage("policies", "Policies", REFERENCE, "What each outcome of an attempt leads to."),
    GuidePage("roles", "Roles and rights", REFERENCE, "Who may do what in the console."),
    GuidePage("settings", "Settings", REFERENCE, "Everything that the environment configures."),
    GuidePage(
        "order",
        "Order, queues and duplicates",
        EXPLANATION,
        "In order or many at once, load-balanced groups, times to live, repetitions.",
    ),
    GuidePage(
        "callbacks", "Callbacks", EXPLANATION, "How the endpoint that took a QUEUE message answers it later."
    ),
    GuidePage("calls", "SYNC calls", EXPLANATION, "How a publisher gets an endpoint's answer at once."),
    GuidePage("mailboxes", "Mailboxes", EXPLANATION, "Fetching and acknowledging instead of being called."),
    GuidePage(
        "retention", "Retention", EXPLANATION, "How long settled deliveries are kept, and what is removed."
    ),
    GuidePage(
        "history", "The history", EXPLANATION, "The archive as Parquet, its checks, reports and replays."
    ),
    GuidePage("speed", "Speed", EXPLANATION, "What was measured, and how to repeat it."),
)
GUIDE_PAGES: Mapping[str, GuidePage] = {page.name: page for page in _PAGES}


def guide_index(request: HttpRequest) -> HttpResponse:
    """List all pages by section."""
    return _shown(request, title="Guide")


def guide_page(request: HttpRequest, name: str) -> HttpResponse:
    """Serve one page; 404 if the guide has none of that name."""
    page = GUIDE_PAGES.get(name)
    if page is None:
        raise Http404(f"The guide has no page {name}.")
    return _shown(request, title=page.title, page=page, text=_as_html(render_to_string(f"guide/{name}.md")))


def _shown(
    request: HttpRequest, *, title: str, page: GuidePage | None = None, text: str = ""
) -> HttpResponse:
    context = {
        **admin.site.each_context(request),
        "title": title,
        "page": page,
        "text": text,
        "sections": _sections(),
    }
    return TemplateResponse(request, "console/guide.html", context)


def _sections() -> Sequence[tuple[str, Sequence[GuidePage]]]:
    return [(section, list(pages)) for section, pages in groupby(_PAGES, key=lambda page: page.section)]


def _as_html(text: str) -> str:
    """Return CommonMark with tables as HTML; HTML inside it is shown as text."""
    html: str = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    return html
