"""Validation of a document's entries, by the serializers of the API.

They differ from those in two ways. Names may refer to objects that the document creates as well as
to stored ones. And no entry may cost a query, because there may be ten thousand subscriptions:
conflicts are searched in all of them at once (`subscriptions.configuration.draft`), and the
constraints are left to the table; the checks of modes and dedup give the readable reasons before.
"""

from collections.abc import Mapping
from typing import Any

from django.db.models import Model
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from subscriptions.api.event_types import EventTypeSerializer
from subscriptions.api.policies import PolicySerializer
from subscriptions.api.problems import field_errors
from subscriptions.api.publishers import EventTypeNames, PublisherSerializer
from subscriptions.api.strict import NameOf, StrictModel
from subscriptions.api.subscribers import SubscriberSerializer
from subscriptions.api.subscription_fields import FilterField
from subscriptions.api.subscriptions import SubscriptionSerializer
from subscriptions.configuration.document import (
    EVENT_TYPES,
    POLICIES,
    PUBLISHERS,
    SUBSCRIBERS,
    SUBSCRIPTIONS,
    Entry,
    Fault,
    Section,
)
from subscriptions.filters import filter_identity
from subscriptions.matching.errors_to import NOBODY
from subscriptions.models import EventType, Policy, Subscriber
from subscriptions.values.names import MAX_NAME_LENGTH

# By model and name: stored objects, and those about to be created.
Known = Mapping[type[Model], Mapping[str, Model]]


class KnownName(NameOf):
    """A reference to another object, which may be one that the document creates."""

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
    """A filter that is parsed once, however many times its document is checked."""

    def to_internal_value(self, data: Any) -> str:
        identities: dict[str, str] = self.context["identities"]
        if not isinstance(data, str) or data not in identities:
            text = super().to_internal_value(data)
            identities[text] = filter_identity(text)
        return str(data)


class PublisherEntry(PublisherSerializer):
    event_types = KnownEventTypes(required=False)

    def validate_errors_to(self, value: str) -> str:
        """Require a known subscriber.

        Its subscription is looked up only when a failure is reported.
        """
        known: Known = self.context["known"]
        subscriber = value.partition("/")[0]
        if value not in ("", NOBODY) and subscriber not in known[Subscriber]:
            raise ValidationError(
                f"There is no subscriber {subscriber[:MAX_NAME_LENGTH]!r}; create it first."
            )
        return value


class SubscriptionEntry(SubscriptionSerializer):
    subscriber = KnownName(queryset=Subscriber.objects.all())
    event_type = KnownName(queryset=EventType.objects.all())
    policy = KnownName(queryset=Policy.objects.all(), required=False)
    filter = RememberedFilter(required=False)

    def _validate_constraints(self, attrs: Mapping[str, Any]) -> None:
        """Do nothing: the table checks its constraints, see above."""

    def _refuse_sync_overlap(self, attrs: Mapping[str, Any]) -> None:
        """Do nothing: `find_rivals` checks all subscriptions at once."""


_SERIALIZERS: dict[str, type[StrictModel]] = {
    EVENT_TYPES.name: EventTypeSerializer,
    POLICIES.name: PolicySerializer,
    SUBSCRIBERS.name: SubscriberSerializer,
    PUBLISHERS.name: PublisherEntry,
    SUBSCRIPTIONS.name: SubscriptionEntry,
}


class Checker:
    """Checks the entries of one section in turn: creating a serializer costs more than using it."""

    def __init__(self, section: Section, known: Known, *, identities: dict[str, str]) -> None:
        self._section = section
        context = {"known": known, "identities": identities}
        self._serializer = _SERIALIZERS[section.name](context=context)

    def check(self, entry: Entry, *, stored: Model | None, of: str) -> tuple[dict[str, Any], list[Fault]]:
        """Return the values to store, and the faults.

        Without a stored row, omitted fields get defaults.
        """
        unknown = [name for name in entry if name not in self._section.fields]
        if unknown:
            detail = f"There is no such field; known are {', '.join(self._section.fields)}."
            return {}, [Fault(object=of, field=name[:100], detail=detail) for name in unknown]
        self._serializer.instance = stored
        self._serializer.partial = stored is not None
        try:
            return self._serializer.run_validation(entry), []
        except ValidationError as error:
            found = field_errors(error.detail)
            return {}, [Fault(object=of, field=one["field"], detail=one["detail"]) for one in found]
