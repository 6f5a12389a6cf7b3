"""The filters that the lists of delivering share."""

from typing import Any

from django.db.models import BigIntegerField, Case, Exists, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce
from django.http import HttpRequest

from delivery.models import Delivery, Replay
from delivery.models.message import parse_public_id
from delivery.states import Status
from subscriptions.admin.base import id_of
from subscriptions.admin.list_filters import (
    LARGEST_ID,
    ChoiceFilter,
    ExactText,
    NameFilter,
    Since,
    SubscriberFilter,
    Until,
)
from subscriptions.models import Publisher, Subscription


class StatusFilter(ChoiceFilter):
    title = "Status"
    parameter_name = lookup = "status"
    offered = Status.values


class DeliverySubscriberFilter(SubscriberFilter):
    """By the ids of the subscriber's subscriptions, which an index of deliveries knows."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.typed():
            return queryset
        found = Subscription.objects.filter(subscriber__name=self.typed()).order_by()
        return queryset.filter(subscription__in=list(found.values_list("pk", flat=True)))


class SubscriptionFilter(ExactText):
    """By the id of a subscription, which is what links give, or by its name."""

    title = "Subscription (id or name)"
    parameter_name = "subscription"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.typed().isdecimal():
            return queryset.filter(subscription_id=int(self.typed()[:18]))
        if not self.typed():
            return queryset
        found = Subscription.objects.filter(name=self.typed()).order_by()
        return queryset.filter(subscription__in=list(found.values_list("pk", flat=True)))


class MessageFilter(ExactText):
    """By the id of a message; what is no id finds nothing, rather than everything."""

    title = "Message"
    parameter_name = "message"
    lookup = "message_id"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.typed():
            return queryset
        return queryset.filter(**{self.lookup: parse_public_id(self.typed()) or 0})


class ReplayFilter(ExactText):
    """By the number of the replay that made it; what is none finds nothing."""

    title = "Replay"
    parameter_name = "replay"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(replay_id=id_of(self.typed()) or 0) if self.typed() else queryset


class PublisherFilter(NameFilter):
    title = "Publisher"
    parameter_name = "publisher"
    lookup = "publisher"
    named = Publisher


class DestinationFilter(ChoiceFilter):
    """Delivered to one destination, or published to all who want it."""

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
    """From a message's id on; what is no id finds nothing."""

    title = "From message"
    parameter_name = "id_from"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.typed():
            return queryset
        found = parse_public_id(self.typed())
        return queryset.none() if found is None else queryset.filter(pk__gte=found)


class IdTo(ExactText):
    """Up to a message's id, that one too; what is no id finds nothing."""

    title = "To message"
    parameter_name = "id_to"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.typed():
            return queryset
        found = parse_public_id(self.typed())
        return queryset.none() if found is None else queryset.filter(pk__lte=found)


class PublishedSince(Since):
    title = "Published since (UTC)"
    column = "published_at"


class PublishedUntil(Until):
    title = "Published until (UTC)"
    column = "published_at"


class DeliveryPublishedSince(PublishedSince):
    """By when its message was published: a delivery is made with its message, so its id is bounded, too.

    One that a replay made is made later: it bounds nothing, and is above the bound.
    """

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if (moment := self.moment()) is None:
            return queryset
        before = Delivery.objects.filter(message__published_at__lt=moment - self.SLACK, replay=None)
        id = Subquery(before.order_by("-message__published_at").values("pk")[:1])
        return queryset.filter(message__published_at__gte=moment, pk__gt=Coalesce(id, 0))


class DeliveryPublishedUntil(PublishedUntil):
    """The same; where a replay may have made some of messages before the moment, they are above the bound, and all is looked at."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if (moment := self.moment()) is None:
            return queryset
        after = Delivery.objects.filter(message__published_at__gte=moment + self.SLACK, replay=None)
        id = Subquery(after.order_by("message__published_at").values("pk")[:1])
        bound = Coalesce(id, LARGEST_ID)
        replays = Replay.objects.filter(since__lt=moment, made__gt=0)
        reach = Case(When(Exists(replays), then=LARGEST_ID), default=bound, output_field=BigIntegerField())
        is_known = Q(pk__lt=bound) | Q(replay__isnull=False)
        return queryset.filter(is_known, pk__lt=reach, message__published_at__lt=moment)
