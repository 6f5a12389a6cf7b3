"""The sign-in form of the console, which checks no password after too many failures."""

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.utils import timezone
from unfold.forms import AuthenticationForm

from delivery.console.people.known_browser import browser_of
from subscriptions import sign_in
from subscriptions.models import Door
from subscriptions.sign_in import ThrottledError, Visitor
from subscriptions.values.client_address import client_address
from subscriptions.values.times import duration


class SignInForm(AuthenticationForm):  # type: ignore[misc]  # Unfold has no types
    """`throttled_seconds` is the remaining wait, if too many failures are the reason of refusal."""

    throttled_seconds: int | None = None

    def clean(self) -> dict[str, Any]:
        username, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if not username or not password:
            return dict(super().clean())
        now = timezone.now()
        visitor = Visitor(
            door=Door.CONSOLE,
            username=username,
            address=client_address(self.request),
            browser=browser_of(self.request, username),
        )
        try:
            attempt = sign_in.begin_sign_in(visitor, now=now)
        except ThrottledError as throttled:
            raise self._refusal(throttled.until, now=now) from None
        cleaned: dict[str, Any] = super().clean()
        sign_in.complete_sign_in(attempt, visitor)
        return cleaned

    def _refusal(self, until: datetime, *, now: datetime) -> ValidationError:
        self.throttled_seconds = max(int((until - now).total_seconds()), 0) + 1
        return ValidationError(
            f"Too many sign-ins failed. Try again in {duration(until - now)}, at {until:%H:%M:%S} "
            "UTC, or ask an administrator to end the wait.",
            code="throttled",
        )
