"""The filters that the lists of delivering share."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from delivery.models.message import parse_public_id
from delivery.states import Status
from subscriptions.admin.list_filters import (
    ChoiceFilter,
    ExactText,
    MomentFilter,
    NameFilter,
    SubscriberFilter,
)
from subscriptions.models import Publisher


class StatusFilter(ChoiceFilter):
    title = "Status"
    parameter_name = lookup = "status"
    offered = Status.values


class DeliverySubscriberFilter(SubscriberFilter):
    lookup = "subscription__subscriber__name"


class SubscriptionFilter(ExactText):
    """By the id of a subscription, which is what links give, or by its name."""

    title = "Subscription (id or name)"
    parameter_name = "subscription"
    lookup = "subscription__name"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.typed().isdecimal():
            return queryset.filter(subscription_id=int(self.typed()[:18]))
        return super().queryset(request, queryset)


class MessageFilter(ExactText):
    """By the id of a message; what is no id finds nothing, rather than everything."""

    title = "Message"
    parameter_name = "message"
    lookup = "message_id"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.typed():
            return queryset
        return queryset.filter(**{self.lookup: parse_public_id(self.typed()) or 0})


class PublisherFilter(NameFilter):
    title = "Publisher"
    parameter_name = "publisher"
    lookup = "publisher__name"
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


class PublishedSince(MomentFilter):
    title = "Published since (UTC)"
    parameter_name = "since"
    lookup = "published_at__gte"


class PublishedUntil(MomentFilter):
    title = "Published until (UTC)"
    parameter_name = "until"
    lookup = "published_at__lt"


class DeliveryPublishedSince(PublishedSince):
    lookup = "message__published_at__gte"


class DeliveryPublishedUntil(PublishedUntil):
    lookup = "message__published_at__lt"
