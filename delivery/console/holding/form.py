"""The options of a hold and of a release: the end, and the rate of the backlog afterwards."""

from datetime import UTC, datetime
from typing import Any

from django import forms

from delivery.support.toggle import Release
from subscriptions.models.holding import FASTEST_RATE, SLOWEST_RATE


class ReleaseForm(forms.Form):
    """The rate of the backlog. Without it, the rate set with the hold applies, if any."""

    catch_up_rate = forms.FloatField(required=False, min_value=SLOWEST_RATE, max_value=FASTEST_RATE)

    @property
    def mistakes(self) -> str:
        return " ".join(str(text) for texts in self.errors.values() for text in texts)


class HoldForm(ReleaseForm):
    """Both fields are optional.

    Without them a person ends the hold, and the backlog is sent as fast as possible.
    """

    until = forms.DateTimeField(required=False)

    def __init__(self, data: Any, *, now: datetime) -> None:
        super().__init__(data)
        self._now = now

    def clean_until(self) -> datetime | None:
        until: datetime | None = self.cleaned_data["until"]
        if until is None:
            return None
        until = until.astimezone(UTC)
        if until <= self._now:
            raise forms.ValidationError("The end must be in the future (UTC).")
        return until

    @property
    def release(self) -> Release | None:
        until, rate = self.cleaned_data["until"], self.cleaned_data["catch_up_rate"]
        return None if until is None and rate is None else Release(until, rate)

    @property
    def words(self) -> str:
        until = self.cleaned_data["until"]
        return f" until {until:%Y-%m-%d %H:%M} UTC" if until else ""
