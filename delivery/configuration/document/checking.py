"""Validation of a document's entries, by the serializers of the API.

They differ from those in two ways. Names may refer to new objects of the document as well as to
stored objects. And no entry may cost a query, because there may be ten thousand subscriptions:
conflicts are searched in all of them at once (`delivery.configuration.document.draft`), and the
constraints are left to the table; the checks of modes and dedup give the readable reasons before.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from django.db.models import CheckConstraint, Model, Q
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from delivery.api.base.strict import NameOf, StrictModel, Text
from delivery.api.configured.common_scripts import CommonScriptSerializer
from delivery.api.configured.event_types import EventTypeSerializer
from delivery.api.configured.policies import PolicySerializer
from delivery.api.configured.publishers import EventTypeNames, PublisherSerializer
from delivery.api.subscribing.subscribers import SubscriberFields
from delivery.api.subscribing.subscription_fields import FilterField, check_filter
from delivery.api.subscribing.subscriptions import SubscriptionFields
from delivery.configuration.document.document import (
    COMMON_SCRIPTS,
    EVENT_TYPES,
    POLICIES,
    PUBLISH_ID,
    PUBLISHERS,
    SUBSCRIBERS,
    SUBSCRIPTIONS,
    DocumentEntry,
    DocumentFault,
    Section,
)
from delivery.incoming.problems import field_errors
from subscriptions.filters import normal_form
from subscriptions.matching.errors_to import NOBODY
from subscriptions.models import EventType, Policy, Subscriber, SubscriberStatus
from subscriptions.publish_ids import PublishIdRefusedError, check_text
from subscriptions.scripts.includes import Library
from subscriptions.values.names import MAX_NAME_LENGTH

# By model and name: stored objects, and those about to be created.
Known = Mapping[type[Model], Mapping[str, Model]]


class KnownName(NameOf):
    """A reference to another object, perhaps created by the document."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid")
        known: Known = self.context["known"]
        assert self.queryset is not None
        found = known[self.queryset.model].get(data)
        if found is None:
            self.fail("does_not_exist", slug_name="name", value=data[:MAX_NAME_LENGTH])
        return found


class KnownEventTypes(EventTypeNames):
    def to_internal_value(self, data: Any) -> list[Any]:
        names = serializers.ListField.to_internal_value(self, data)
        known: Known = self.context["known"]
        if missing := [name for name in names if name not in known[EventType]]:
            raise ValidationError(f"There is no event type {missing[0]}; create it first.")
        return [known[EventType][name] for name in sorted(set(names))]


class RememberedFilter(FilterField):
    """A filter parsed once, however many times the document is checked."""

    def to_internal_value(self, data: Any) -> str:
        identities: dict[str, str] = self.context["identities"]
        if not isinstance(data, str) or data not in identities:
            text = Text.to_internal_value(self, data)
            identities[text] = normal_form(check_filter(text)) if text else ""
        return str(data)


class PublisherEntry(PublisherSerializer):
    event_types = KnownEventTypes(required=False)
    publish_id = Text(required=False, write_only=True)

    class Meta(PublisherSerializer.Meta):
        fields = [*PublisherSerializer.Meta.fields, PUBLISH_ID]

    def validate_publish_id(self, value: str) -> str:
        try:
            check_text(value)
        except PublishIdRefusedError as refused:
            raise ValidationError(str(refused)) from None
        return value

    def validate_errors_to(self, value: str) -> str:
        """Require a known subscriber.

        The subscription is looked up only when a failure is reported.
        """
        known: Known = self.context["known"]
        subscriber = value.partition("/")[0]
        if value not in ("", NOBODY) and subscriber not in known[Subscriber]:
            raise ValidationError(
                f"There is no subscriber {subscriber[:MAX_NAME_LENGTH]!r}; create it first."
            )
        return value


class RememberedConstraints(StrictModel):
    """Entries whose check constraints are evaluated once for the same values.

    Django queries the database for each constraint of each row, and thousands of subscribers may
    have the same settings.
    """

    def _validate_constraints(self, attrs: Mapping[str, Any]) -> None:
        consistent: set[tuple[str, ...]] = self.context["consistent"]
        model: type[Model] = self.Meta.model
        row = self._changed_row(attrs)
        values = (model.__name__, *(repr(getattr(row, name)) for name in _constrained(model)))
        if values not in consistent:
            super()._validate_constraints(attrs)
            consistent.add(values)


@cache
def _constrained(model: type[Model]) -> list[str]:
    """Return the fields in check constraints."""
    checks = (
        constraint
        for constraint in model._meta.constraints
        if isinstance(constraint, CheckConstraint)
    )
    return sorted({name for check in checks for name in Q(check.condition).referenced_base_fields})


class EventTypeEntry(RememberedConstraints, EventTypeSerializer):
    """An event type."""


class PolicyEntry(RememberedConstraints, PolicySerializer):
    """A policy."""


class SubscriberEntry(RememberedConstraints, SubscriberFields):
    """A subscriber, with the status."""

    status = serializers.ChoiceField(choices=SubscriberStatus.choices, required=False)

    class Meta(SubscriberFields.Meta):
        fields = [*SubscriberFields.Meta.fields, "status"]


class SubscriptionEntry(SubscriptionFields):
    subscriber = KnownName(queryset=Subscriber.objects.all())
    event_type = KnownName(queryset=EventType.objects.all())
    policy = KnownName(queryset=Policy.objects.all(), required=False)
    filter = RememberedFilter(required=False)

    def _validate_constraints(self, attrs: Mapping[str, Any]) -> None:
        """Do nothing: the table checks the constraints, see above."""

    def _refuse_moved_credentials(self, attrs: Mapping[str, Any]) -> None:
        """Do nothing: `moved_endpoints.moved_faults` knows which references have a value."""

    def _refuse_sync_overlap(self, attrs: Mapping[str, Any]) -> None:
        """Do nothing: `conflicts.conflicting_subscriptions` checks all subscriptions at once."""


_SERIALIZERS: dict[str, type[StrictModel]] = {
    EVENT_TYPES.name: EventTypeEntry,
    POLICIES.name: PolicyEntry,
    COMMON_SCRIPTS.name: CommonScriptSerializer,
    SUBSCRIBERS.name: SubscriberEntry,
    PUBLISHERS.name: PublisherEntry,
    SUBSCRIPTIONS.name: SubscriptionEntry,
}


class Checker:
    """Checks the entries of a section in turn: creating a serializer costs more than using it."""

    def __init__(
        self, section: Section, known: Known, *, remembered: Mapping[str, Any], common: Library
    ) -> None:
        self._section = section
        context = {"known": known, "common": common, **remembered}
        self._serializer = _SERIALIZERS[section.name](context=context)

    def check(
        self, entry: DocumentEntry, *, stored: Model | None, of: str
    ) -> tuple[dict[str, Any], list[DocumentFault]]:
        """Return the values to store, and the faults.

        Without a stored row, omitted fields get defaults.
        """
        known = (*self._section.fields, *self._section.given_only)
        unknown = [name for name in entry if name not in known]
        if unknown:
            detail = f"There is no such field; known are {', '.join(known)}."
            return {}, [
                DocumentFault(object=of, field=name[:100], detail=detail) for name in unknown
            ]
        self._serializer.instance = stored
        self._serializer.partial = stored is not None
        try:
            return self._serializer.run_validation(entry), []
        except ValidationError as error:
            found = field_errors(error.detail)
            return {}, [
                DocumentFault(object=of, field=refusal["field"], detail=refusal["detail"])
                for refusal in found
            ]
