"""The form of a test message, filled with the event type's sample."""

from typing import Any

from delivery.calls.trial import Trial
from delivery.console.shared.message_form import TypedMessageForm
from subscriptions.models import Subscription
from subscriptions.values.forwarding import ANY


class TestMessageForm(TypedMessageForm):
    """Anything may be sent, including bodies that publishing would refuse.

    Endpoints should cope.
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
