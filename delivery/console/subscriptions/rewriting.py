"""The page to rewrite endpoint URLs in bulk: it lists the new URLs, then applies them."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_http_methods

from delivery.console.shared.base import actor_of
from delivery.console.subscriptions.rewrite_form import RewriteForm
from subscriptions.rewriting import (
    ChangedError,
    RewriteError,
    RewritePlan,
    plan_rewrite,
    rewrite_subscriptions,
)
from subscriptions.values.built_in_receivers import built_in_receivers

SHOWN = 200


class EndpointRewriting:
    """Mix into the ModelAdmin of subscriptions."""

    list_before_template = "console/subscriptions/rewrite_link.html"

    def get_urls(self) -> list[URLPattern]:
        page = self.admin_site.admin_view(  # type: ignore[attr-defined]
            require_http_methods(["GET", "POST"])(self.rewrite_endpoints)
        )
        name = "subscriptions_subscription_rewrite"
        return [path("rewrite/", page, name=name), *super().get_urls()]  # type: ignore[misc]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the list, with a link to pass the filters on."""
        shown = dict(extra_context or {})
        if self.may_change_rows(request):  # type: ignore[attr-defined]
            kept = request.GET.copy()
            for name in set(kept) - set(RewriteForm.base_fields):
                del kept[name]
            address = reverse("admin:subscriptions_subscription_rewrite")
            shown["rewrite_url"] = f"{address}?{kept.urlencode()}" if kept else address
        page: HttpResponse = super().changelist_view(request, shown)  # type: ignore[misc]
        return page

    def rewrite_endpoints(self, request: HttpRequest) -> HttpResponse:
        """Show the new URL of each subscription.

        On POST, apply them if the plan is still the same.
        """
        if not self.may_change_rows(request):  # type: ignore[attr-defined]
            raise PermissionDenied
        data = request.POST or request.GET
        # Otherwise everybody who may change an endpoint could read the credentials elsewhere.
        may_keep = request.user.has_perm("subscriptions.change_installation")
        if "old" in data:
            form = RewriteForm(data, may_keep=may_keep)
        else:
            form = RewriteForm(initial=data.dict(), may_keep=may_keep)
        if form.is_valid() and request.method == "POST" and (done := self._rewrite(request, form)):
            return done
        planned = _plan(form) if form.is_bound and form.is_valid() else None
        return self._page(request, form, planned)

    def _rewrite(self, request: HttpRequest, form: RewriteForm) -> HttpResponse | None:
        """Return the redirect after rewriting, or None with the errors in the form."""
        try:
            count = rewrite_subscriptions(
                form.selected(),
                form.cleaned_data["replacement"],
                seen=request.POST.get("seen", ""),
                allowed_networks=settings.ENVIRONMENT.allowed_networks,
                built_in_receivers=built_in_receivers(settings.ENVIRONMENT.base_url),
                actor=actor_of(request),
            )
        except ChangedError:
            text = (
                "Nothing was changed, because a subscription has just changed. "
                "The list below is current."
            )
            messages.error(request, text)
            return None
        except RewriteError as error:
            form.add_error(None, str(error))
            return None
        noun = "subscription" if count == 1 else "subscriptions"
        messages.success(request, f"The URLs of {count:,} {noun} were changed.")
        return HttpResponseRedirect(reverse("admin:subscriptions_subscription_changelist"))

    def _page(
        self, request: HttpRequest, form: RewriteForm, planned: RewritePlan | None
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),  # type: ignore[attr-defined]
            "opts": self.opts,  # type: ignore[attr-defined]
            "title": "Change endpoint URLs",
            "form": form,
            "plan": planned,
            "rows": [] if planned is None else [*planned.refused, *planned.accepted][:SHOWN],
        }
        return TemplateResponse(request, "console/subscriptions/rewrite.html", context)


def _plan(form: RewriteForm) -> RewritePlan | None:
    environment = settings.ENVIRONMENT
    try:
        return plan_rewrite(
            form.selected(),
            form.cleaned_data["replacement"],
            allowed_networks=environment.allowed_networks,
            built_in_receivers=built_in_receivers(environment.base_url),
        )
    except RewriteError as error:
        form.add_error(None, str(error))
        return None
