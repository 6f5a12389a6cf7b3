"""Metrics of the whole installation, which Prometheus reads: loaded from the database per request.

Every process reports the same values. Each statement has a bounded cost: counts of waiting
deliveries end at 100,000, or 10,000 in the retry lane and in the callback lane. Without a database
the rest of `/metrics` is still served.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from django.db import DatabaseError, InterfaceError
from django.utils import timezone
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import REGISTRY, Collector

from delivery.database.parts import running_sessions
from delivery.database.queries import named_row
from delivery.incidents.open_incidents import open_counts
from delivery.models import IncidentSeverity, TrafficMark, UrlState
from delivery.standing import callback_lane, retry_lane
from delivery.standing.bounded_counts import BACKLOG_LIMIT
from delivery.standing.reading import stopped_counts
from delivery.standing.vocabulary import Cause
from delivery.states import LaneState


class InstallationCollector(Collector):
    def describe(self) -> Iterable[Metric]:
        """Return nothing: otherwise to register the collector would query the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        try:
            read = [
                *_backlog(now=timezone.now()),
                *_lanes(),
                *_incidents(),
                *_retries(),
                *_callbacks(),
                *_counted(),
                *_parts(),
            ]
        except (DatabaseError, InterfaceError):
            read = []
        yield _gauge(
            "up", "Whether the database answered when these metrics were read.", float(bool(read))
        )
        yield from read


def register_metrics() -> None:
    """Register the collector with the metrics of this process, once."""
    REGISTRY.register(_INSTALLATION)


_INSTALLATION = InstallationCollector()


def _backlog(*, now: datetime) -> Iterator[Metric]:
    row = named_row("overview_backlog", {"limit": BACKLOG_LIMIT, "lanes": 0})
    oldest = max((now - row["oldest_at"]).total_seconds(), 0.0) if row["oldest_at"] else 0.0
    yield _gauge("backlog_deliveries", "Deliveries that are PENDING.", row["backlog"])
    yield _gauge(
        "held_deliveries",
        "The part of the backlog that is HELD, or belongs to INACTIVE or SHADOW subscriptions.",
        row["held"],
    )
    yield from _holds()
    yield _gauge(
        "shadow_subscriptions",
        "Subscriptions that record matches and send nothing.",
        row["shadows"],
    )
    yield _gauge("mailbox_deliveries", "Backlog in mailboxes.", row["in_mailboxes"])
    yield _gauge(
        "in_doubt_deliveries",
        "Deliveries IN_DOUBT, about which a person must decide.",
        row["in_doubt"],
    )
    yield _gauge("oldest_pending_seconds", "Age of the oldest waiting delivery.", oldest)


def _holds() -> Iterator[Metric]:
    row = named_row("holds", {})
    yield _gauge(
        "sending_held", "Whether all sending is HELD: 1 or 0.", float(row["is_sending_held"])
    )
    held = GaugeMetricFamily("inturn_held", "Deliveries HELD by a person.", labels=["what"])
    held.add_metric(["subscriber"], row["subscribers"])
    held.add_metric(["subscription"], row["subscriptions"])
    yield held


def _lanes() -> Iterator[Metric]:
    found = stopped_counts()
    lanes = GaugeMetricFamily("inturn_stopped_lanes", "Stopped lanes.", labels=["state"])
    for state in (LaneState.BLOCKED, LaneState.SUSPENDED):
        lanes.add_metric([state.value], found.get(Cause(state), 0))
    yield lanes
    yield _gauge(
        "down_endpoints",
        "Endpoints whose last try failed, in a lane that goes on.",
        found.get(Cause.DOWN, 0),
    )


def _incidents() -> Iterator[Metric]:
    found = open_counts()
    incidents = GaugeMetricFamily(
        "inturn_incidents_open", "Open incidents, not acknowledged.", labels=["severity"]
    )
    for severity in IncidentSeverity:
        incidents.add_metric([severity.value], found.get(severity, 0))
    yield incidents


def _retries() -> Iterator[Metric]:
    lane = retry_lane.read_retry_lane()
    yield _gauge(
        "retry_lane_deliveries", "Deliveries waiting in the retry lane.", lane.retries.waiting.found
    )
    yield _gauge(
        "retry_lane_due_deliveries", "Due deliveries of the retry lane.", lane.retries.due.found
    )
    urls = GaugeMetricFamily("inturn_stopped_urls", "DISABLED or FROZEN URLs.", labels=["state"])
    urls.add_metric([UrlState.DISABLED.value], lane.disabled_urls)
    urls.add_metric([UrlState.FROZEN.value], lane.frozen_urls)
    yield urls


def _callbacks() -> Iterator[Metric]:
    lane = callback_lane.read_callback_lane()
    yield _gauge(
        "callback_lane_deliveries", "Deliveries that wait in the callback lane.", lane.waiting.found
    )
    yield _gauge(
        "callback_lane_failed_deliveries",
        "Of these, deliveries that failed before.",
        lane.failed.found,
    )


def _counted() -> Iterator[Metric]:
    """Yield the chores' counts; nothing before their first pass."""
    mark = TrafficMark.objects.first()
    if mark is None:
        return
    for name, description, value in (
        ("messages_accepted", "Accepted messages.", mark.accepted),
        ("deliveries_delivered", "Deliveries that were DELIVERED.", mark.delivered),
        (
            "deliveries_failed",
            "Deliveries that were REJECTED, 3xxNOTSUPPORTED, FAILED or EXPIRED.",
            mark.failed,
        ),
    ):
        yield CounterMetricFamily(f"inturn_{name}", description, value=value)
    until = mark.until.timestamp()
    yield _gauge(
        "traffic_counted_until_timestamp_seconds",
        "End of the time that the chores have counted.",
        until,
    )


def _parts() -> Iterator[Metric]:
    sessions = GaugeMetricFamily(
        "inturn_part_sessions",
        "Connections of parts that are at work: one for each sender, up to two for the others.",
        labels=["part"],
    )
    for part, running in running_sessions().items():
        sessions.add_metric([part], running)
    yield sessions


def _gauge(name: str, description: str, value: float) -> Metric:
    return GaugeMetricFamily(f"inturn_{name}", description, value=value)
