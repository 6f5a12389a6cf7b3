"""Filters shared by several lists of the console."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from delivery.console.shared.base import id_of
from delivery.console.shared.input_filters import (
    ChoiceFilter,
    ExactText,
    NameFilter,
    Since,
    Until,
)
from delivery.console.shared.tabs import TabFilter, narrow, statuses_of
from delivery.models import IncidentDelivery, Message
from delivery.models.delivery import PLACE_BITS, ids_of_message
from delivery.models.message import parse_public_id
from delivery.models.published import LARGEST_MESSAGE_ID, id_limit, lowest_id
from delivery.states import Status
from subscriptions.matching.typed_names import UnknownNameError, subscription_ids
from subscriptions.models import EventType, Publisher, Subscriber, Subscription


class SubscriberFilter(NameFilter):
    title = "Subscriber"
    parameter_name = "subscriber"
    lookup = "subscriber"
    named = Subscriber


class EventTypeFilter(NameFilter):
    title = "Event type"
    parameter_name = "event_type"
    lookup = "event_type"
    named = EventType


class DeliveryStatusFilter(ChoiceFilter):
    title = "Status"
    parameter_name = lookup = "status"
    offered = Status.values


class DeliveryTabFilter(TabFilter):
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        # The filter by status has applied a status, which is narrower.
        return narrow(queryset, statuses_of(request.GET))


class _OfSubscriptions(NameFilter):
    """Filter by the ids of the subscriptions referring to the named object.

    Deliveries have an index with these ids.
    """

    def about(self, queryset: QuerySet[Any], pk: int) -> QuerySet[Any]:
        subscriptions = Subscription.objects.filter(**{self.lookup: pk}).order_by()
        return queryset.filter(subscription__in=list(subscriptions.values_list("pk", flat=True)))


class DeliverySubscriberFilter(_OfSubscriptions):
    title = "Subscriber"
    parameter_name = lookup = "subscriber"
    named = Subscriber


class DeliveryEventTypeFilter(_OfSubscriptions):
    """Filter by the event type of the subscription."""

    title = "Event type"
    parameter_name = lookup = "event_type"
    named = EventType


class SubscriptionFilter(NameFilter):
    """Filter by `subscriber/subscription`, by a name alone, or by an id, as links have it."""

    title = "Subscription"
    parameter_name = "subscription"
    named = Subscription

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.typed():
            return queryset
        try:
            return self.of(queryset, subscription_ids(self.typed(), reach=self.reach))
        except UnknownNameError as error:
            self.mistake = error.detail
            return queryset.none()

    def of(self, queryset: QuerySet[Any], ids: list[int]) -> QuerySet[Any]:
        # The ids themselves: the planner has statistics for them, but none for a subquery's.
        return queryset.filter(subscription_id__in=ids)


class MessageFilter(ExactText):
    """Filter by the id of a message. An invalid id matches nothing, rather than everything."""

    title = "Message"
    parameter_name = "message"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.typed():
            return queryset
        return self.about(queryset, parse_public_id(self.typed()) or 0)

    def about(self, queryset: QuerySet[Any], message_id: int) -> QuerySet[Any]:
        return queryset.filter(message_id=message_id)


class OfMessageFilter(MessageFilter):
    """Filter deliveries by their message, as a range of primary keys."""

    def about(self, queryset: QuerySet[Any], message_id: int) -> QuerySet[Any]:
        return queryset.filter(pk__range=ids_of_message(message_id))


class ReplayFilter(ExactText):
    """Filter by the number of the creating replay. An invalid number matches nothing."""

    title = "Replay"
    parameter_name = "replay"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(replay_id=id_of(self.typed()) or 0) if self.typed() else queryset


class IncidentFilter(ExactText):
    """Filter by the delivery's incident of failures. An invalid number matches nothing."""

    title = "Incident"
    parameter_name = "incident"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.typed():
            return queryset
        failed = IncidentDelivery.objects.filter(incident=id_of(self.typed()) or 0)
        return queryset.filter(pk__in=failed.values("delivery_id"))


class PublisherFilter(NameFilter):
    title = "Publisher"
    parameter_name = "publisher"
    lookup = "publisher"
    named = Publisher


class DestinationFilter(ChoiceFilter):
    """Filter by destination: messages delivered to one, or published to all subscriptions."""

    title = "Destination"
    parameter_name = "destination"
    offered = ("published", "delivered")

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "published":
                return queryset.filter(destination="")
            case "delivered":
                return queryset.exclude(destination="")
        return queryset


class IdFrom(ExactText):
    """Filter from the id of a message on. An invalid id matches nothing."""

    title = "From message"
    parameter_name = "id_from"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.typed():
            return queryset
        id = parse_public_id(self.typed())
        return queryset.none() if id is None else queryset.filter(pk__gte=id)


class IdTo(ExactText):
    """Filter up to and including the id of a message. An invalid id matches nothing."""

    title = "To message"
    parameter_name = "id_to"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.typed():
            return queryset
        id = parse_public_id(self.typed())
        return queryset.none() if id is None else queryset.filter(pk__lte=id)


class PublishedSince(Since):
    """Filter by the time of publication; see `delivery.models.published`."""

    title = "Published since (UTC)"
    column = "published_at"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if (moment := self.moment()) is None:
            return queryset
        # Read before: a text search reads ranges of ids, which the planner would prefer to a bound
        # unknown to it.
        first = Message.objects.values_list(lowest_id(moment), flat=True).first()
        return queryset.filter(published_at__gte=moment, pk__gte=first or 0)


class PublishedUntil(Until):
    """Filter by the time of publication; see `delivery.models.published`."""

    title = "Published until (UTC)"
    column = "published_at"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if (moment := self.moment()) is None:
            return queryset
        limit = Message.objects.values_list(id_limit(moment), flat=True).first()
        return queryset.filter(published_at__lt=moment, pk__lt=limit or LARGEST_MESSAGE_ID)


class DeliveryPublishedSince(PublishedSince):
    """Filter by the message's time of publication.

    The ids of messages bound the ids of their deliveries.
    """

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if (moment := self.moment()) is None:
            return queryset
        return queryset.filter(
            message__published_at__gte=moment, pk__gte=lowest_id(moment) * 2**PLACE_BITS
        )


class DeliveryPublishedUntil(PublishedUntil):
    """Filter by the message's time of publication; see DeliveryPublishedSince."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if (moment := self.moment()) is None:
            return queryset
        return queryset.filter(
            message__published_at__lt=moment, pk__lt=id_limit(moment) * 2**PLACE_BITS
        )
