"""The pages requested by `bench console`: first pages of lists, pages far behind, filters."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.urls import reverse

from delivery.console.shared.input_filters import ChoiceFilter
from delivery.console.shared.keyset import KeysetAdmin
from delivery.console.shared.parameters import BEFORE
from tests.bench.console_samples import Samples, spread

MEDIAN_MS, NINETY_FIFTH_MS = 150, 400
SEARCH_MS = 1_000
# The text of a broken-off search.
BROKEN_OFF = b"Search further"
# They are measured separately.
_TEXTS = ("body", "header")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPage:
    """A kind of page, the addresses requested in turn, and the limits.

    An answer with `unwanted` counts as an error, such as a broken-off search. `part` is the id of
    the refreshed element, empty for the whole page.
    """

    name: str
    addresses: Sequence[str]
    median_ms: float = MEDIAN_MS
    ninety_fifth_ms: float = NINETY_FIFTH_MS
    unwanted: bytes = b""
    part: str = ""


def pages(samples: Samples) -> list[MeasuredPage]:
    return [
        *_overview(),
        *_lists(samples),
        *_combined(samples),
        *_texts(samples),
        *_single(samples),
    ]


def _overview() -> Iterator[MeasuredPage]:
    yield MeasuredPage(name="overview", addresses=[reverse("admin:index")])
    for part in ("overview-now", "traffic-figures"):
        yield MeasuredPage(
            name=f"overview, {part} refreshed", addresses=[reverse("admin:index")], part=part
        )


def _lists(samples: Samples) -> Iterator[MeasuredPage]:
    for model, of in admin.site._registry.items():
        name, address = str(model._meta.verbose_name_plural), list_of(model)
        yield MeasuredPage(name=name, addresses=[address])
        if isinstance(of, KeysetAdmin):
            yield _page(f"{name}, far behind", address, [{BEFORE: id} for id in spread(model)])
        for parameter, values in _filters(of, samples):
            yield _page(f"{name} by {parameter}", address, [{parameter: value} for value in values])


def _filters(of: admin.ModelAdmin[Any], samples: Samples) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield a list's filters with their values, without Django's own, of small tables."""
    filters: Sequence[Any] = of.list_filter
    for a_filter in filters:
        parameter = getattr(a_filter, "parameter_name", "")
        is_choice = isinstance(a_filter, type) and issubclass(a_filter, ChoiceFilter)
        values = a_filter.offered if is_choice else samples.texts.get(parameter)
        if values and parameter not in _TEXTS:
            yield parameter, values


def list_of(model: type[Any]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def _combined(samples: Samples) -> Iterator[MeasuredPage]:
    """Yield pages with support's combinations of filters."""
    deliveries = reverse("admin:delivery_delivery_changelist")
    since, later = samples.texts["since"][2], samples.texts["until"][1]
    yield _page(
        "deliveries by subscriber and status",
        deliveries,
        [
            {"subscriber": name, "status": status}
            for name in samples.texts["subscriber"]
            for status in ("FAILED", "PENDING", "DELIVERED")
        ],
    )
    tabs = ("failed", "waiting", "in-doubt")
    yield _page("deliveries by tab", deliveries, [{"tab": name} for name in tabs])
    yield _page(
        "deliveries by subscriber and tab",
        deliveries,
        [{"subscriber": name, "tab": tab} for name in samples.texts["subscriber"] for tab in tabs],
    )
    yield _page(
        "deliveries by subscriber, status and time",
        deliveries,
        [
            {"subscriber": name, "status": "FAILED", "since": since, "until": later}
            for name in samples.texts["subscriber"]
        ],
    )
    yield _page(
        "deliveries by id",
        deliveries,
        [{"q": id} for id in (*samples.deliveries, *samples.texts["message"])],
    )
    messages = reverse("admin:delivery_message_changelist")
    yield _page("messages by tab", messages, [{"tab": name} for name in tabs])
    yield _page("messages by id", messages, [{"q": id} for id in samples.texts["message"]])
    yield _page(
        "messages by event type and time",
        messages,
        [
            {"event_type": event_type, "since": since, "until": later}
            for event_type in samples.texts["event_type"]
        ],
    )


def _texts(samples: Samples) -> Iterator[MeasuredPage]:
    """Yield a search without an index, over the last day.

    It searches for a text of many bodies, of a single body and of none.
    """
    day = f"{samples.now - timedelta(days=1):%Y-%m-%dT%H:%M:%S}"
    searched = _page(
        "messages by a text of the body, of the last day",
        reverse("admin:delivery_message_changelist"),
        [{"body": text, "since": day} for text in samples.texts["body"]],
    )
    yield replace(searched, median_ms=SEARCH_MS, ninety_fifth_ms=SEARCH_MS, unwanted=BROKEN_OFF)


def _single(samples: Samples) -> Iterator[MeasuredPage]:
    for model, ids in (
        ("delivery_message", samples.messages),
        ("delivery_delivery", samples.deliveries),
        ("subscriptions_subscriber", [row.pk for row in samples.subscribers]),
        ("subscriptions_subscription", [row.pk for row in samples.subscriptions]),
    ):
        addresses = [reverse(f"admin:{model}_change", args=[id]) for id in ids]
        yield MeasuredPage(name=f"a {model.partition('_')[2]}", addresses=addresses)


def _page(name: str, address: str, queries: Sequence[dict[str, Any]]) -> MeasuredPage:
    return MeasuredPage(name=name, addresses=[f"{address}?{urlencode(query)}" for query in queries])
