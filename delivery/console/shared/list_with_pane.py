"""Lists with a pane: on a wide window, the selected row is shown next to the list.

`?open=` in the address names the row, so a link shows the same; without scripts only this works. On
a narrow window a row leads to a page.
"""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from delivery.console.shared.base import id_of
from delivery.console.shared.keyset import KeysetAdmin, KeysetChangeList
from delivery.console.shared.parameters import OPEN
from delivery.console.shared.refresh import is_refresh


class SplitChangeList(KeysetChangeList):
    """Ignore the open row: it filters nothing, and links to other pages of the list drop it."""

    def get_filters_params(self, params: Any = None) -> Any:
        return {
            name: value
            for name, value in super().get_filters_params(params).items()
            if name != OPEN
        }

    def get_query_string(self, new_params: Any = None, remove: Any = None) -> str:
        return super().get_query_string(new_params, [*(remove or []), OPEN])


class SplitAdmin(KeysetAdmin):
    """A list with a pane; `pane_context` returns the values for `pane_template`."""

    pane_template: str
    list_display_links = None
    list_after_template = "console/shared/pane.html"

    class Media:
        js = ["console/split.js"]

    def pane_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Return the values of the row's page, with the row itself as `opened`.

        Raise Http404 and PermissionDenied, as the page does.
        """
        raise NotImplementedError

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[SplitChangeList]:
        return SplitChangeList

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        shown = dict(extra_context or {})
        opened = id_of(request.GET.get(OPEN, "").removeprefix("msg_"))
        if opened is not None and self.model._default_manager.filter(pk=opened).exists():
            shown |= self.pane_context(request, str(opened)) | {"pane_template": self.pane_template}
        page: HttpResponse = super().changelist_view(request, shown)
        return page

    def page(
        self, request: HttpRequest, object_id: str, *, title: str, template: str
    ) -> TemplateResponse:
        """Return the pane's content as a separate page, or for the pane of the list."""
        context = self.pane_context(request, object_id)
        if is_refresh(request):
            context["pane_template"] = self.pane_template
            return TemplateResponse(request, "console/shared/pane_content.html", context)
        page_context = {**self.admin_site.each_context(request), "opts": self.opts, "title": title}
        return TemplateResponse(
            request, template, page_context | context | {"original": context["opened"]}
        )

    def opening(self, row: Any, text: str) -> SafeString:
        """Return the link of a row: to the page, or to the pane on a wide window."""
        page = reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", args=[row.pk])
        return format_html(
            '<a class="inturn-link" href="{}" data-open="{}">{}</a>', page, row.pk, text
        )
