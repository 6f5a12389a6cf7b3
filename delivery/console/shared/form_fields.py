"""Form fields used by several forms of the console."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django import forms
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import ValidationError
from django.db.models import Model
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from delivery.support.bulk_jobs import FASTEST_RATE, SLOWEST_RATE
from subscriptions.filters import FilterError, parse_filter
from subscriptions.matching.typed_names import (
    LONGEST_SUBSCRIPTION,
    UnknownNameError,
    object_id,
    subscription_ids,
)
from subscriptions.models import EventType, Subscriber, Subscription
from subscriptions.reach import Reach, reach_of_names
from subscriptions.values.forwarding import checked_patterns
from subscriptions.values.header_values import HeaderError
from subscriptions.values.names import MAX_NAME_LENGTH


def name_field(label: str) -> forms.CharField:
    return forms.CharField(
        label=label, required=False, max_length=MAX_NAME_LENGTH, widget=UnfoldAdminTextInputWidget
    )


class _NamedField(forms.CharField):
    """The name of a configured object; `open_names` sets whose names the user may see."""

    named: type[Model]
    reach: Reach | None = Reach()


class SubscriptionField(_NamedField):
    """A subscription as `subscriber/subscription`, the name alone, or the id."""

    named = Subscription

    def __init__(self) -> None:
        super().__init__(
            label="Subscription",
            required=False,
            max_length=LONGEST_SUBSCRIPTION,
            widget=UnfoldAdminTextInputWidget({"placeholder": "subscriber/subscription"}),
        )

    def clean(self, value: Any) -> Any:
        """Return the text; raise ValidationError with the nearest name for an unknown name."""
        text = super().clean(value)
        if text:
            with _unknown_names_reported():
                subscription_ids(text, reach=self.reach)
        return text


class ObjectNameField(_NamedField):
    """The name of a configured object."""

    def __init__(self, label: str, named: type[Subscriber | EventType]) -> None:
        super().__init__(
            label=label,
            required=False,
            max_length=MAX_NAME_LENGTH,
            widget=UnfoldAdminTextInputWidget,
        )
        self.named = named

    def clean(self, value: Any) -> Any:
        """Return the text; raise ValidationError with the nearest name for an unknown name."""
        text = super().clean(value)
        if text:
            with _unknown_names_reported():
                object_id(self.named, text, reach=self.reach)
        return text


def open_names(form: forms.Form, user: User | AnonymousUser) -> None:
    """Let the fields of a form know the names open to the user."""
    for field in form.fields.values():
        if isinstance(field, _NamedField):
            field.reach = reach_of_names(user, field.named)


@contextmanager
def _unknown_names_reported() -> Iterator[None]:
    try:
        yield
    except UnknownNameError as error:
        raise ValidationError(error.detail) from None


def filter_field(label: str, *, help_text: str) -> forms.CharField:
    widget = UnfoldAdminTextareaWidget({"rows": 3, "class": "inturn-code", "spellcheck": "false"})
    return forms.CharField(label=label, required=False, widget=widget, help_text=help_text)


def checked_filter(text: str) -> str:
    """Return the filter, or "" for a blank filter.

    Raise ValidationError with line and column if it is not valid.
    """
    if not text.strip():
        return ""
    try:
        parse_filter(text)
    except FilterError as error:
        raise ValidationError(
            f"{error.message} (line {error.line}, column {error.column})"
        ) from None
    return text


def rate_field() -> forms.FloatField:
    return forms.FloatField(
        label="Deliveries per second",
        help_text="Empty: no limit.",
        required=False,
        min_value=SLOWEST_RATE,
        max_value=FASTEST_RATE,
        widget=UnfoldAdminTextInputWidget({"inputmode": "decimal"}),
    )


class HeaderPatterns(forms.CharField):
    """The list of a JSON column: header names, or their beginnings followed by `*`.

    A line has a name; commas separate names as well.
    """

    def __init__(
        self,
        *,
        encoder: object = None,
        decoder: object = None,
        widget: object = None,
        help_text: str = "",
        **options: Any,
    ) -> None:
        # A JSON column gives encoders, and the console the widget of JSON.
        del encoder, decoder, widget
        attributes = {"rows": 2, "class": "inturn-code", "spellcheck": "false"}
        super().__init__(
            widget=UnfoldAdminTextareaWidget(attributes),
            help_text=f"{help_text} One per line.",
            **options,
        )

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        try:
            return checked_patterns(super().clean(value).replace(",", " ").split())
        except HeaderError as error:
            raise ValidationError(str(error)) from error

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial), data)
