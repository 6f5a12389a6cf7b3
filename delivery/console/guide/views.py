"""The guide in the console, for everybody who may sign in: index, pages and search."""

from typing import Any

from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from delivery.console.guide.pages import GUIDE_PAGES, pages_by_kind
from delivery.console.guide.search import search_guide
from delivery.console.guide.text import guide_text


def guide_index(request: HttpRequest) -> HttpResponse:
    """List all pages by kind, or with `?q=` the sections with all words."""
    query = request.GET.get("q", "").strip()
    if not query:
        return _guide_response(request, title="Guide")
    return _guide_response(request, title="Search the guide", query=query, hits=search_guide(query))


def guide_page(request: HttpRequest, name: str) -> HttpResponse:
    """Serve a page; 404 if the guide has no page of the name."""
    page = GUIDE_PAGES.get(name)
    if page is None:
        raise Http404(f"The guide has no page {name}.")
    return _guide_response(request, title=page.title, page=page, text=guide_text(name))


def _guide_response(request: HttpRequest, **context: Any) -> HttpResponse:
    context = {**admin.site.each_context(request), **context, "kinds": pages_by_kind()}
    return TemplateResponse(request, "console/guide/page.html", context)
