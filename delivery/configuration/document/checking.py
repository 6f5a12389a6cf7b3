"""Validation of a document's entries, by the serializers of the API.

They differ from those in two ways. Names may refer to objects that the document creates as well as
to stored ones. And no entry may cost a query, because there may be ten thousand subscriptions:
conflicts are searched in all of them at once (`delivery.configuration.document.draft`).
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.db.models import Model
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from delivery.api.base.strict import NameOf, StrictModel, Text
from delivery.api.configured.common_scripts import CommonScriptSerializer
from delivery.api.configured.event_types import EventTypeSerializer
from delivery.api.configured.policies import PolicySerializer
from delivery.api.configured.publishers import EventTypeNames, PublisherSerializer
from delivery.api.subscribing.subscribers import SubscriberFields
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
from subscriptions.filters import FilterError, normal_form, parse_filter
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


class RememberedFilter(Text):
    """A filter that is parsed once, however many times its document is checked."""

    def run_validators(self, value: Any) -> None:
        identities: dict[str, str] = self.context["identities"]
        if value in identities:
            return
        try:
            identities[value] = normal_form(parse_filter(value))
        except FilterError:
            super().run_validators(value)


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


class SubscriberEntry(SubscriberFields):
    """A subscriber, with its status."""

    status = serializers.ChoiceField(choices=SubscriberStatus.choices, required=False)

    class Meta(SubscriberFields.Meta):
        fields = [*SubscriberFields.Meta.fields, "status"]


class SubscriptionEntry(SubscriptionFields):
    subscriber = KnownName(queryset=Subscriber.objects.all())
    event_type = KnownName(queryset=EventType.objects.all())
    policy = KnownName(queryset=Policy.objects.all(), required=False)

    field_classes: ClassVar[Mapping[str, Any]] = {
        **SubscriptionFields.field_classes,
        "filter": RememberedFilter,
    }

    def _refuse_moved_credentials(self, attrs: Mapping[str, Any]) -> None:
        """Do nothing: `moved_endpoints.moved_faults` knows which references have a value."""

    def _refuse_sync_overlap(self, attrs: Mapping[str, Any]) -> None:
        """Do nothing: `conflicts.conflicting_subscriptions` checks all subscriptions at once."""


_SERIALIZERS: dict[str, type[StrictModel]] = {
    EVENT_TYPES.name: EventTypeSerializer,
    POLICIES.name: PolicySerializer,
    COMMON_SCRIPTS.name: CommonScriptSerializer,
    SUBSCRIBERS.name: SubscriberEntry,
    PUBLISHERS.name: PublisherEntry,
    SUBSCRIPTIONS.name: SubscriptionEntry,
}


class Checker:
    """Checks the entries of a section in turn: creating a serializer costs more than using it."""

    def __init__(
        self, section: Section, known: Known, *, identities: dict[str, str], common: Library
    ) -> None:
        self._section = section
        context = {"known": known, "common": common, "identities": identities}
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
