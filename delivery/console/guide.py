"""The guide: pages of templates/guide/, written in Markdown, for everybody who may sign in to the console."""

from dataclasses import dataclass

from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from markdown_it import MarkdownIt


@dataclass(frozen=True, slots=True)
class GuidePage:
    """A page of the guide; its text is `templates/guide/<name>.md`, which is a template too."""

    name: str
    title: str
    icon: str


GUIDE_PAGES = {page.name: page for page in (GuidePage("speed", "Speed", "speed"),)}


def guide_page(request: HttpRequest, name: str) -> HttpResponse:
    """Serve one page; 404 if the guide has none of that name."""
    page = GUIDE_PAGES.get(name)
    if page is None:
        raise Http404(f"The guide has no page {name}.")
    context = {
        **admin.site.each_context(request),
        "title": page.title,
        "text": _as_html(render_to_string(f"guide/{page.name}.md")),
    }
    return TemplateResponse(request, "console/guide.html", context)


def _as_html(text: str) -> str:
    """Return CommonMark with tables as HTML; HTML inside it is shown as text."""
    html: str = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    return html
