"""The list of messages as a search without an index: the progress, and the link to continue."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from delivery.console.shared.input_filters import ExactText
from delivery.console.shared.keyset import KeysetPage
from delivery.console.shared.list_filters import (
    DeliveryStatusFilter,
    IdFrom,
    IdTo,
    PublishedSince,
    PublishedUntil,
    SubscriberFilter,
    SubscriptionFilter,
)
from delivery.console.shared.list_with_pane import SplitChangeList
from delivery.console.shared.parameters import AFTER, BEFORE
from delivery.console.shared.tabs import statuses_of
from delivery.models import Message
from delivery.models.message import parse_public_id
from delivery.support.payload import may_see_payload
from delivery.support.search import Search, Walked, ids_between, walk_messages
from subscriptions.matching.typed_names import UnknownNameError, subscription_ids
from subscriptions.models import Subscription

LONGEST_TEXT = 500
# The hours of a text search unless the address has a start; and the ranges on offer.
DEFAULT_HOURS = 24
SPANS = ((1, "last hour"), (24, "last day"), (24 * 7, "last week"), (None, "any time"))
# The epoch: a start before all messages.
ANY_TIME = "1970-01-01T00:00:00"


class _SearchedFor:
    """A filter applied by the search rather than the list."""

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return queryset


class SearchedStatusFilter(_SearchedFor, DeliveryStatusFilter):
    title = "Status of a delivery"


class SearchedSubscriberFilter(SubscriberFilter):
    """Filter by the subscriber of a delivery: only checks the name, the search applies it."""

    title = "Subscriber of a delivery"

    def about(self, queryset: QuerySet[Any], pk: int) -> QuerySet[Any]:
        return queryset


class SearchedSubscriptionFilter(SubscriptionFilter):
    """Filter by the subscription of a delivery: only checks the name, the search applies it."""

    title = "Subscription of a delivery"

    def of(self, queryset: QuerySet[Any], ids: list[int]) -> QuerySet[Any]:
        return queryset


class HeaderFilter(_SearchedFor, ExactText):
    """A field above the list, not in the panel of filters."""

    title = "Header"
    parameter_name = "header"

    def has_output(self) -> bool:
        return False


class BodyFilter(HeaderFilter):
    title = "Body"
    parameter_name = "body"


class SearchedPage(KeysetPage):
    template_name = "console/messages/pagination.html"
    is_finished = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProgress:
    """The progress of a page of a search.

    `reached_at` is the time of publication of the last message examined, `percent` the share of the
    range covered by this page and the previous pages.
    """

    seconds: float
    reached: int | None
    reached_at: datetime | None
    percent: int = 0
    is_refused: bool = False


class MessageChangeList(SplitChangeList):
    """Walk the messages when searching for a text or a status, instead of querying a page."""

    progress: SearchProgress | None = None

    def get_results(self, request: HttpRequest) -> None:
        search = requested_search(self.params)
        if not search:
            super().get_results(request)
            return
        self.has_active_filters = True
        if search.reads_payloads and not may_see_payload(request.user):
            self._show(Walked(rows=(), reached=None, is_full=False))
            self.progress = SearchProgress(
                seconds=0, reached=None, reached_at=None, is_refused=True
            )
            return
        began = timezone.now()
        first, last = self._range()
        walked = self._walk(search, first=first, last=last)
        self._show(walked)
        took = (timezone.now() - began).total_seconds()
        self.progress = SearchProgress(
            seconds=took,
            reached=walked.reached,
            reached_at=_published(walked.reached),
            percent=_percent(walked.reached, first=first, last=last),
        )

    def _range(self) -> tuple[int, int]:
        """Return the first and the last id of the filters."""
        first, last = ids_between(
            _moment(PublishedSince, self.params), _moment(PublishedUntil, self.params)
        )
        first = max(first, parse_public_id(self.params.get(str(IdFrom.parameter_name), "")) or 0)
        return first, min(
            last, parse_public_id(self.params.get(str(IdTo.parameter_name), "")) or last
        )

    def _walk(self, search: Search, *, first: int, last: int) -> Walked:
        before = self._bound(BEFORE)
        last = last if before is None else min(last, before - 1)
        return walk_messages(
            self.queryset, search, first=first, last=last, count=self.list_per_page
        )

    def _show(self, walked: Walked) -> None:
        self.result_list = list(walked.rows)
        self.result_count = self.full_result_count = len(walked.rows)
        self.show_full_result_count = self.can_show_all = self.multi_page = False
        page = SearchedPage(walked.rows, self.list_per_page)
        page.is_finished = walked.is_full or walked.reached is None
        if walked.reached is not None:
            page.older_url = self.get_query_string({BEFORE: walked.reached}, [AFTER])
        if BEFORE in self.params:
            page.newer_url = self.get_query_string(remove=[BEFORE, AFTER])
        self.paginator = page
        self.model_admin.complete(self.result_list)  # type: ignore[attr-defined]

    @property
    def spans(self) -> list[tuple[str, str]]:
        """The ranges of time on offer, each with an address."""
        return [
            (words, self.get_query_string(_since(hours), [BEFORE, AFTER])) for hours, words in SPANS
        ]

    @property
    def others(self) -> list[tuple[str, str]]:
        """The address's parameters kept by the search form."""
        typed = ("header", "body", BEFORE, AFTER, "open")
        return [(name, value) for name, value in self.params.items() if name not in typed]


def requested_search(params: Any) -> Search:
    def text(name: str) -> str:
        return str(params.get(name, "")).strip().replace("\0", "")[:LONGEST_TEXT]

    return Search(
        header=text("header"),
        body=text("body"),
        statuses=statuses_of(params),
        subscriptions=_subscriptions(text("subscriber"), text("subscription")),
    )


def _subscriptions(subscriber: str, subscription: str) -> tuple[int, ...] | None:
    """Return the ids of the named subscriptions; None if none is.

    An unknown name selects none; the filter reports the mistake, and keeps all rows from those who
    may not see the names.
    """
    if not subscriber and not subscription:
        return None
    try:
        ids = set(subscription_ids(subscription, reach=None)) if subscription else None
    except UnknownNameError:
        return ()
    if not subscriber:
        return tuple(ids or ())
    rows = Subscription.objects.filter(subscriber__name=subscriber).order_by()
    return tuple(pk for pk in rows.values_list("pk", flat=True) if ids is None or pk in ids)


def with_range(params: Any) -> str | None:
    """Return the query of a text search without a start, with the last day as range.

    None if the query needs no change.
    """
    parameters = {name: value for name, value in params.items() if value}
    if not requested_search(parameters).reads_payloads or parameters.keys() & {
        "since",
        "id_from",
        BEFORE,
    }:
        return None
    return urlencode(parameters | _since(DEFAULT_HOURS))


def _since(hours: int | None) -> dict[str, str]:
    if hours is None:
        return {"since": ANY_TIME}
    return {"since": f"{timezone.now() - timedelta(hours=hours):%Y-%m-%dT%H:%M:%S}"}


def _moment(of: type[Any], params: Any) -> datetime | None:
    moment: datetime | None = of(
        None, {of.parameter_name: [params.get(of.parameter_name, "")]}, None, None
    ).moment()
    return moment


def _percent(reached: int | None, *, first: int, last: int) -> int:
    if reached is None or first > last:
        return 100
    return max(0, 100 * (last - reached + 1) // (last - first + 1))


def _published(reached: int | None) -> datetime | None:
    if reached is None:
        return None
    rows = Message.objects.filter(pk__gte=reached).order_by("pk")
    return rows.values_list("published_at", flat=True).first()
