"""The page that sends a test message and shows the endpoint's answer, with its form."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from delivery.calls.slots import NoSlotError
from delivery.calls.trial import LONGEST_WAIT_SECONDS, Tested, Trial, send_test
from delivery.console.shared.base import actor_of
from delivery.console.shared.message_form import TypedMessageForm
from delivery.support.payload import Payload, may_see_payload, payload_of
from subscriptions.models import Mode, Subscription
from subscriptions.values.forwarding import ANY

PULLED = "A mailbox gets no test messages; its page shows how to fetch."
DELETED = "Nothing was sent: the subscription has just been deleted."
BUSY = "Nothing was sent: other test messages are being sent. Try again in a few seconds."
# Credentials and values added by the subscription are masked, also here.
_SHOWN_HEADERS = ("webhook-", "inturn-", "content-type")


class TestMessageForm(TypedMessageForm):
    """The form, filled with the event type's sample.

    Anything may be sent, including bodies that publishing would refuse: endpoints should cope.
    """

    # Keeps pytest from collecting this class.
    __test__ = False

    def __init__(self, data: Any, *, subscription: Subscription) -> None:
        patterns = subscription.forward_headers
        named = [f"{name}: test" for name in patterns if not name.endswith(ANY)]
        super().__init__(data, event_type=subscription.event_type, headers="\n".join(named))
        if patterns:
            text = f"One per line: Name: value. The subscription forwards {', '.join(patterns)}."
            self.fields["headers"].help_text = text
        else:
            del self.fields["headers"]

    @property
    def trial(self) -> Trial:
        typed = self.cleaned_data
        return Trial(
            content_type=typed["content_type"], body=typed["body"], headers=typed.get("headers", {})
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTest:
    """The request and the result for display; other headers are shown by name only."""

    tested: Tested
    sent: list[tuple[str, str]]
    also_sent: list[str]
    answer: Payload | None

    @property
    def outcome(self) -> Any:
        return self.tested.called.outcome


class TestSending:
    """Mixin for the ModelAdmin of subscriptions."""

    # Keeps pytest from collecting this class.
    __test__ = False

    def get_urls(self) -> list[URLPattern]:
        page = self.admin_site.admin_view(  # type: ignore[attr-defined]
            require_http_methods(["GET", "POST"])(self.send_test)
        )
        test = path("<int:object_id>/test/", page, name="subscriptions_subscription_send_test")
        return [test, *super().get_urls()]  # type: ignore[misc]

    def send_test(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Show the form; on POST, send the message and show the answer next to it."""
        subscription: Subscription
        subscription = self.permitted(request, object_id)  # type: ignore[attr-defined]
        if subscription.mode == Mode.PULL:
            return self._warned(request, PULLED)
        form = TestMessageForm(request.POST or None, subscription=subscription)
        try:
            shown = self._sent(request, subscription, form) if form.is_valid() else None
        except Subscription.DoesNotExist:
            return self._warned(request, DELETED)
        context = {
            **self.admin_site.each_context(request),  # type: ignore[attr-defined]
            "opts": self.opts,  # type: ignore[attr-defined]
            "original": subscription,
            "title": f"Test message to {subscription}",
            "form": form,
            "shown": shown,
            "may_see_payload": may_see_payload(request.user),
            "longest_seconds": LONGEST_WAIT_SECONDS,
        }
        return TemplateResponse(request, "console/subscriptions/test_message.html", context)

    def _warned(self, request: HttpRequest, text: str) -> HttpResponse:
        response: HttpResponse = self.back(  # type: ignore[attr-defined]
            request, text, level=messages.WARNING
        )
        return response

    def _sent(
        self, request: HttpRequest, subscription: Subscription, form: TestMessageForm
    ) -> ShownTest | None:
        try:
            tested = send_test(
                subscription, form.trial, actor=actor_of(request), now=timezone.now()
            )
        except NoSlotError:
            form.add_error(None, BUSY)
            return None
        return _shown(tested)


def _shown(tested: Tested) -> ShownTest:
    headers, typed = tested.request.headers, tested.request.parcel.headers or {}
    shown = [name for name in headers if name in typed or name.lower().startswith(_SHOWN_HEADERS)]
    excerpt = tested.called.outcome.excerpt
    return ShownTest(
        tested=tested,
        sent=[(name, headers[name]) for name in shown],
        also_sent=[name for name in headers if name not in shown],
        answer=payload_of(excerpt) if excerpt else None,
    )
