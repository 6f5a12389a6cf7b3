"""The overview's chart, and the health of subscriptions and subscribers, by stored counts."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from delivery.console.health import recent as health
from delivery.console.health.sparkline import sparkline, sparkline_in_detail
from delivery.console.overview import charts
from delivery.console.overview.charts import ChartPoint, ChartSpan
from delivery.database.statements import statement
from delivery.models import SubscriptionTraffic, TrafficMark, TrafficMinute
from delivery.states import Status
from subscriptions.models import Subscription
from tests.support import factories
from tests.unit.delivery.console.fetching import fetched
from tests.unit.delivery.console.refreshing import refresh

TRAFFIC = "delivery_subscriptiontraffic"
NOON = datetime(2026, 5, 4, 12, 7, 30, tzinfo=UTC)
ROOT = "/admin/subscriptions"


def minute(at: datetime, **counts: int) -> None:
    TrafficMinute.objects.create(at=at.replace(second=0, microsecond=0), **counts)


def quarter(
    subscription: Subscription,
    *,
    hours_ago: float,
    step: int = 3,
    now: datetime = NOON,
    **counts: int,
) -> None:
    at = now - timedelta(seconds=now.timestamp() % 900) - timedelta(hours=hours_ago)
    SubscriptionTraffic.objects.create(subscription=subscription, at=at, step=step, **counts)


@pytest.mark.django_db
class TestChart:
    @pytest.fixture(autouse=True)
    def _counted(self) -> None:
        TrafficMark.objects.create(pk=1, until=NOON)

    def test_of_the_hour_has_a_point_for_each_complete_minute(self) -> None:
        minute(NOON, accepted=100)
        minute(NOON - timedelta(minutes=1), accepted=3, delivered=2, failed=1)
        minute(NOON - timedelta(minutes=60), accepted=5)
        minute(NOON - timedelta(minutes=61), accepted=100)
        chart = charts.read_chart(ChartSpan.HOUR, now=NOON)
        assert len(chart.points) == 61
        assert (chart.accepted, chart.delivered, chart.failed) == (108, 2, 1)
        assert [chart.points[place].accepted for place in (0, -2, -1)] == [5, 3, 100]

    def test_ends_now_with_what_is_not_counted_yet(self) -> None:
        now = NOON + timedelta(seconds=50)
        for seconds in (-20, 10, 40):
            message = factories.message(published_at=NOON + timedelta(seconds=seconds))
            factories.delivery(
                Status.REJECTED, message=message, settled_at=NOON + timedelta(seconds=seconds)
            )
        chart = charts.read_chart(ChartSpan.HOUR, now=now)
        assert (chart.accepted, chart.failed, chart.until) == (2, 2, now)
        assert chart.points[-1] == ChartPoint(
            at=NOON.replace(second=0), accepted=2, delivered=0, failed=2
        )

    def test_ends_with_the_last_counted_step_if_too_much_is_uncounted(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(charts, "_UNCOUNTED_LIMIT", 1)
        for seconds in (10, 20):
            factories.message(published_at=NOON + timedelta(seconds=seconds))
        chart = charts.read_chart(ChartSpan.HOUR, now=NOON + timedelta(seconds=50))
        assert (chart.accepted, chart.until) == (0, NOON.replace(second=0))

    def test_of_the_day_has_a_point_for_each_quarter_of_an_hour(self) -> None:
        for minutes in (8, 20, 22):
            minute(NOON - timedelta(minutes=minutes), delivered=1)
        chart = charts.read_chart(ChartSpan.DAY, now=NOON)
        assert len(chart.points) == 97
        assert chart.points[-2].at == NOON.replace(hour=11, minute=45, second=0)
        assert [point.delivered for point in chart.points[-3:]] == [0, 3, 0]

    def test_says_when_counting_has_stopped(self) -> None:
        assert not charts.read_chart(ChartSpan.HOUR, now=NOON).is_stale
        assert charts.read_chart(ChartSpan.HOUR, now=NOON + timedelta(minutes=5)).is_stale

    @pytest.mark.parametrize(("asked", "span"), [(None, "hour"), ("day", "day"), ("week", "hour")])
    def test_shows_the_span_in_the_address(self, asked: str | None, span: str) -> None:
        assert charts.chosen_span(asked) == span


class TestOverview:
    def test_has_the_figures_in_words_in_a_table_and_for_the_browser_to_draw(
        self, ann: Client
    ) -> None:
        now = timezone.now()
        TrafficMark.objects.create(pk=1, until=now)
        minute(now - timedelta(minutes=5), accepted=1200, delivered=2400, failed=7)
        page = ann.get("/admin/").text
        for words in (
            "1,200 messages accepted",
            "2,400 deliveries delivered",
            "7 failed",
            "As a table",
        ):
            assert words in page
        part = refresh(ann, "/admin/?span=hour", "traffic-figures")
        assert sum(orjson.loads(part.context["chart"].values)["failed"]) == 7
        assert "1,200 messages accepted" in part.text
        assert "overview-now" not in part.text

    def test_keeps_the_span_of_the_address(self, ann: Client) -> None:
        for address, span in (("/admin/?span=day", "day"), ("/admin/?span=<script>", "hour")):
            chart = refresh(ann, address, "traffic-figures").context["chart"]
            assert chart.span.value == span

    def test_shows_the_remedy_when_counting_has_stopped(self, ann: Client) -> None:
        assert "manage.py qcluster" in ann.get("/admin/").text

    def test_reads_only_uncounted_deliveries_for_the_chart(self, ann: Client) -> None:
        factories.delivery(Status.DELIVERED)
        with CaptureQueriesContext(connection) as queries:
            refresh(ann, "/admin/", "traffic-figures")
        assert not [query["sql"] for query in queries if "delivery_delivery" in query["sql"]]
        # Session, user, mark, minutes, and what is not counted; three statements make one moment.
        assert len(queries) == 8


@pytest.mark.django_db
class TestHealth:
    def test_covers_the_last_day(self) -> None:
        row = factories.subscription()
        for hours, delivered in ((0, 1), (23.75, 10), (24, 100)):
            quarter(row, hours_ago=hours, delivered=delivered)
        (found,) = health.health_of_subscriptions([row.pk], now=NOON).values()
        assert len(found.bars) == 24
        assert (found.bars[0].delivered, found.bars[-1].delivered, found.delivered) == (10, 1, 11)

    def test_never_overstates_the_success_rate(self) -> None:
        row = factories.subscription()
        quarter(row, hours_ago=1, delivered=9_999, failed=1)
        (found,) = health.health_of_subscriptions([row.pk], now=NOON).values()
        assert found.success == "99.9 %"

    def test_of_an_idle_subscription_is_empty(self) -> None:
        row = factories.subscription()
        (found,) = health.health_of_subscriptions([row.pk], now=NOON).values()
        assert (found.success, found.p95_ms, found.settled) == ("–", None, 0)
        assert "No deliveries or permanent failures" in sparkline(found)

    def test_percentiles_cover_all_measured_attempts(self) -> None:
        row = factories.subscription()
        quarter(row, hours_ago=1, step=2, delivered=94)
        quarter(row, hours_ago=2, step=19, failed=6)
        quarter(row, hours_ago=3, step=-1, failed=1000)
        (found,) = health.health_of_subscriptions([row.pk], now=NOON).values()
        assert found.p50_ms == 2
        assert found.p95_ms == pytest.approx(1200, rel=0.22)

    def test_of_a_subscriber_combines_its_subscriptions(self) -> None:
        crm = factories.subscriber()
        for _ in range(2):
            quarter(factories.subscription(subscriber=crm), hours_ago=1, delivered=2, failed=1)
        quarter(factories.subscription(), hours_ago=1, delivered=100)
        (found,) = health.health_of_subscribers([crm.pk], now=NOON).values()
        assert (found.delivered, found.failed) == (4, 2)

    def test_is_read_by_the_primary_key(self) -> None:
        asked: dict[str, Any] = {
            "subscriptions": [1],
            "subscribers": [],
            "since": NOON,
            "step": health.HOUR,
        }
        with connection.cursor() as cursor:
            # Without the sizes and statistics that other tests left: for a table found empty, or
            # with a key that grew, another index does as well.
            cursor.execute(f"TRUNCATE {TRAFFIC}")
            cursor.execute("SELECT pg_clear_relation_stats('public', %s)", [TRAFFIC])
            cursor.execute(
                "SELECT pg_clear_attribute_stats('public', tablename::text, attname::text, false)"
                " FROM pg_stats WHERE schemaname = 'public' AND tablename = %s",
                [TRAFFIC],
            )
            cursor.execute(f"EXPLAIN {statement('traffic_of_subscriptions')}", asked)
            plan = "\n".join(line[0] for line in cursor.fetchall())
        assert f"{TRAFFIC}_pkey" in plan

    def test_a_small_share_of_failures_is_visible(self) -> None:
        row = factories.subscription()
        quarter(row, hours_ago=1, delivered=100_000, failed=1)
        (found,) = health.health_of_subscriptions([row.pk], now=NOON).values()
        drawn = sparkline_in_detail(found, height=20)
        assert re.search(r'class="inturn-spark-bad" d="M[0-9]+ 18.0h3v2.0h-3z"', drawn)
        assert 'style="' not in drawn
        assert "100,000 delivered, 1 failed" in drawn


class TestTrafficPages:
    def test_the_lists_show_the_last_day(self, ann: Client) -> None:
        row = factories.subscription()
        quarter(row, hours_ago=1, now=timezone.now(), step=0, delivered=3, failed=1)
        for address in ("subscription", "subscriber"):
            page = ann.get(f"{ROOT}/{address}/").text
            assert "75 %, p95 0 ms" in page, address
            assert "3 delivered, 1 failed" in page, address

    def test_a_subscription_and_its_subscriber_show_theirs(self, ann: Client) -> None:
        row = factories.subscription()
        quarter(row, hours_ago=1, now=timezone.now(), delivered=3, failed=1)
        for address in (f"subscription/{row.pk}", f"subscriber/{row.subscriber_id}"):
            for page in (
                ann.get(f"{ROOT}/{address}/").text,
                refresh(ann, f"{ROOT}/{address}/").text,
            ):
                assert "Success rate" in page, address
                assert "75 %" in page, address

    def test_a_refresh_has_the_mailbox_too(self, ann: Client, pulled: Subscription) -> None:
        fetched(pulled)
        for address in (f"subscription/{pulled.pk}", f"subscriber/{pulled.subscriber_id}"):
            assert "fetched, not acknowledged yet" in refresh(ann, f"{ROOT}/{address}/").text

    def test_a_missing_subscription_is_404(self, ann: Client) -> None:
        for address in ("subscription/123456/", "subscriber/123456/"):
            assert refresh(ann, f"{ROOT}/{address}").status_code == 404
