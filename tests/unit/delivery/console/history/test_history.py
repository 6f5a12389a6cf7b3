"""The charts of the history: their sources, their sums, and their limits."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from delivery.console.history import page as history
from delivery.console.history.range import (
    DAY,
    HOUR,
    LONGEST,
    HistoryRange,
    HistorySpan,
    requested_range,
)
from subscriptions.models import Subscription
from tests.support import factories
from tests.unit.delivery.console import history_rows

PAGE = "/admin/delivery/historyhour/"
# A Thursday.
NOW = datetime(2026, 1, 15, 10, 20, tzinfo=UTC)
TEN = NOW.replace(minute=0)


class TestQuery:
    def test_the_default_is_the_week_until_the_end_of_this_hour(self) -> None:
        found = requested_range({}, now=NOW)
        assert (found.span, found.until, found.until - found.since) == (
            HistorySpan.WEEK,
            TEN + HOUR,
            7 * DAY,
        )

    def test_since_and_until_are_extended_to_whole_hours(self) -> None:
        found = requested_range({"since": "2026-01-02T03:30", "until": "2026-01-04T05:10"}, now=NOW)
        assert found.span is HistorySpan.CUSTOM
        assert found.since == datetime(2026, 1, 2, 3, tzinfo=UTC)
        assert found.until == datetime(2026, 1, 4, 6, tzinfo=UTC)

    @pytest.mark.parametrize(
        "given",
        [
            {"span": "century"},
            {"since": "yesterday"},
            {"since": "0001-01-01T00:00", "until": "9999-12-31T23:00"},
            {"since": "2026-01-10T00:00", "until": "2020-01-01T00:00"},
            {"since": "2000-01-01T00:00"},
            {"until": "2300-01-01T00:00"},
            {"subscriber": "x" * 5_000 + "\0"},
        ],
    )
    def test_a_wrong_address_falls_back_to_the_default(self, given: dict[str, str]) -> None:
        found = requested_range(given, now=NOW)
        assert timedelta() < found.until - found.since <= LONGEST
        assert found.step <= found.until - found.since + 7 * DAY

    def test_a_chart_has_some_two_hundred_points_at_most(self) -> None:
        for days in (1, 7, 8, 9, 30, 90, 200, 400):
            found = HistoryRange(span=HistorySpan.CUSTOM, since=TEN - days * DAY, until=TEN)
            assert days * DAY / found.step <= 200


@pytest.fixture
def orders(db: None) -> Subscription:
    return factories.subscription("orders", subscriber=factories.subscriber("crm"))


def read(**given: str) -> history.HistoryPage:
    return history.read_history_page(requested_range(given, now=NOW))


def test_hours_are_added_up_and_percentiles_are_the_worst(orders: Subscription) -> None:
    other = factories.subscription("audit", subscriber=factories.subscriber("archive"))
    history_rows.hour(TEN - HOUR, of=orders, delivered=90, rejected=10, latency_p95=300.0)
    history_rows.hour(TEN - HOUR, of=other, delivered=100, rejected=0, latency_p95=100.0)
    found = read(span="day")
    point = next(point for point in found.points if point.at == TEN - HOUR)
    assert (point.delivered, point.failed, point.success) == (190, 10, "95 %")
    assert point.percentiles["latency_p95"] == 300
    assert (len(found.points), found.totals["attempts"], found.success) == (24, 24, "95 %")
    assert not found.is_exact
    assert json.loads(found.values)["success"].count(None) == 23


def test_percentiles_of_one_subscription_and_event_type_are_exact(orders: Subscription) -> None:
    history_rows.hour(TEN - HOUR, of=orders)
    names = {"subscription": "orders", "event_type": orders.event_type.name}
    assert read(**names).is_exact
    assert read(**names | {"subscription": str(orders.pk)}).is_exact
    assert not read(subscription="orders").is_exact
    assert not read(span="month", **names).is_exact


def test_failures_stand_at_their_weekday_and_hour_the_most_of_them_darkest(
    orders: Subscription,
) -> None:
    history_rows.hour(TEN, of=orders, rejected=2, unsupported=1, failed=1, expired=1)
    history_rows.hour(TEN - 7 * DAY, of=orders, rejected=5)
    history_rows.hour(TEN - HOUR, of=orders, rejected=1)
    heat = dict(read(span="month").heat)
    assert (heat["Thursday"][10].failed, heat["Thursday"][10].shade) == (10, history.SHADES)
    assert (heat["Thursday"][9].failed, heat["Thursday"][9].shade) == (1, 1)
    assert sum(cell.failed for cells in heat.values() for cell in cells) == 11


def test_the_page_ranks_most_failures_and_longest_blocks(orders: Subscription) -> None:
    calm = factories.subscription("calm", subscriber=orders.subscriber)
    history_rows.hour(
        TEN - 2 * HOUR, of=orders, endpoint="https://old.example/", blocked_seconds=1800.0
    )
    history_rows.hour(
        TEN - HOUR, of=orders, endpoint="https://new.example/", blocked_seconds=3600.0
    )
    history_rows.hour(TEN - HOUR, of=calm, rejected=0)
    found = read()
    assert [(row.subscription, row.endpoint, row.failed) for row in found.failing] == [
        ("orders", "https://new.example/", 2)
    ]
    assert found.blocked == [("crm", "1 h 30 min")]


def test_rows_outside_the_selection_do_not_count(orders: Subscription) -> None:
    history_rows.hour(TEN - 8 * DAY, of=orders)
    assert read().totals["delivered"] == 0
    assert read(span="month").totals["delivered"] == 10
    assert read(span="month", subscriber="nobody").totals["delivered"] == 0
    assert read(span="month", subscription="nothing").totals["delivered"] == 0
    assert read(span="month", subscription="9" * 50).totals["delivered"] == 0
    assert read(span="month", event_type=orders.event_type.name).totals["delivered"] == 10


def test_a_rollup_shows_at_once_though_answers_are_kept(orders: Subscription) -> None:
    row = history_rows.hour(TEN - HOUR, of=orders)
    assert read().totals["delivered"] == 10
    row.delete()
    history_rows.hour(TEN - HOUR, of=orders, delivered=11)
    assert read().totals["delivered"] == 11


def test_a_deleted_subscription_keeps_its_history(orders: Subscription, ann: Client) -> None:
    at = timezone.now().replace(minute=0, second=0, microsecond=0)
    history_rows.hour(at, of=orders)
    orders.secrets.all().delete()
    orders.delete()
    assert "crm/orders" in ann.get(PAGE).text


def test_the_page_shows_the_end_of_the_rollup_and_a_note_on_percentiles(
    ann: Client, orders: Subscription
) -> None:
    history_rows.hour(history_rows.this_hour(), of=orders)
    history_rows.archived(datetime(2026, 1, 15, 9, 30, tzinfo=UTC))
    page = ann.get(PAGE).text
    assert "2026-01-15 09:30 UTC</time>, the end of the archive" in page
    assert "percentiles cannot be added up" in page


def test_without_a_history_the_page_names_the_first_step(ann: Client, reader: Client) -> None:
    page = ann.get(PAGE).text
    assert "No statistics yet" in page
    assert "/admin/delivery/pipelinerun/request/export/" in page
    history_rows.archived()
    assert "/admin/delivery/pipelinerun/request/export/" not in ann.get(PAGE).text
    assert "/admin/delivery/pipelinerun/request/rollup/" in ann.get(PAGE).text
    assert "/request/" not in reader.get(PAGE).text


def test_an_unknown_selection_offers_everybody(ann: Client, orders: Subscription) -> None:
    history_rows.hour(history_rows.this_hour(), of=orders)
    page = ann.get(PAGE, {"subscriber": "nobody", "span": "day"}).text
    assert "No results for these names" in page
    assert 'href="?span=day"' in page
