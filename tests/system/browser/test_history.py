"""The history's pages in a browser: drawn charts, a live run, a replay from form to preview."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone
from playwright.sync_api import expect

from delivery.models import HistoryHour, PipelineRun, Replay, ReplayState, RunState, Step
from subscriptions.models import EventType, Subscription
from tests.support import factories
from tests.system.browser.visitor import ConsoleVisitor
from tests.unit.delivery.console import history_rows
from tests.unit.delivery.console.history_rows import ARCHIVED, HOUR

pytestmark = pytest.mark.django_db(transaction=True)

DRAWN = (
    "['success', 'latency', 'response'].map(name => "
    "Chart.getChart(`history-${name}`).data.datasets[0].data.filter(n => n !== null).length)"
)


@pytest.fixture
def week(transactional_db: None) -> Subscription:
    """A week of two subscriptions, of which one fails at night and blocks once."""
    orders, audit = (
        factories.subscription(name, subscriber=factories.subscriber(owner))
        for name, owner in (("orders", "crm"), ("audit-trail", "archive"))
    )
    now = history_rows.this_hour()
    history_rows.archived(now)
    for age in range(1, 7 * 24 + 1):
        at = now - age * HOUR
        is_night = at.hour in (2, 3, 4)
        history_rows.hour(
            at,
            of=orders,
            delivered=400 + age * 37 % 300,
            rejected=age % 40 + 30 if is_night else age % 3,
            blocked_seconds=1_900.0 if is_night else 0.0,
            latency_p99=4_000.0 if is_night else 700.0 + age * 13 % 200,
        )
        history_rows.hour(at, of=audit, delivered=90 + age * 11 % 60, rejected=0)
    return orders


@pytest.mark.slow
def test_charts_are_drawn_with_labels(week: Subscription, ann: ConsoleVisitor) -> None:
    ann.page.goto("/admin/delivery/historyhour/")
    assert ann.page.evaluate(DRAWN) == [167, 167, 167]
    expect(ann.page.get_by_text("percentiles cannot be added up").first).to_be_visible()
    ann.photograph("history")
    ann.page.get_by_label("Subscription").fill("audit-trail")
    ann.page.get_by_label("Event type").fill(EventType.objects.order_by("-id")[0].name)
    ann.page.get_by_role("button", name="Show").click()
    expect(ann.page.get_by_text("Exact, per hour.").first).to_be_visible()
    assert "subscription=audit-trail" in ann.page.url
    ann.page.get_by_role("link", name="24 hours").click()
    ann.page.wait_for_url("**/?span=day*")
    ann.page.wait_for_load_state()
    assert 0 < ann.page.evaluate(DRAWN)[0] <= 24
    assert "subscription=audit-trail" in ann.page.url
    ann.page.get_by_text("As a table").click()
    ann.photograph("history-day")


@pytest.mark.slow
def test_an_empty_history_shows_the_next_step(ann: ConsoleVisitor) -> None:
    HistoryHour.objects.all().delete()
    ann.page.goto("/admin/delivery/historyhour/")
    ann.photograph("history-empty")
    ann.page.get_by_role("button", name="Run the export now").click()
    expect(ann.page.get_by_text("Queued")).to_be_visible()
    run = PipelineRun.objects.get()
    assert (run.step, run.asked_by) == (Step.EXPORT, "ann")
    ann.photograph("pipeline-run-waiting")


def test_a_running_step_is_watched_and_stopped(ann: ConsoleVisitor) -> None:
    run = history_rows.run(
        Step.EXPORT, RunState.RUNNING, doing="exporting 2026-11-22", done=20_000, count=80_000
    )
    ann.page.goto(f"/admin/delivery/pipelinerun/{run.pk}/change/")
    expect(ann.page.get_by_role("heading", name="Exporting 2026-11-22")).to_be_visible()
    PipelineRun.objects.filter(pk=run.pk).update(done=60_000, log="10:00:01 exporting\n")
    expect(ann.page.locator("#run .inturn-note", has_text="60,000 of 80,000 rows")).to_be_visible()
    ann.photograph("pipeline-run")
    ann.page.once("dialog", lambda dialog: dialog.accept())
    ann.page.get_by_role("button", name="Stop").click()
    expect(ann.page.get_by_role("heading", name="Stopping")).to_be_visible()
    error = "The archive cannot be written: No space left on device."
    PipelineRun.objects.filter(pk=run.pk).update(
        state=RunState.FAILED, ended_at=timezone.now(), error=error
    )
    expect(ann.page.get_by_text(error)).to_be_visible()
    expect(ann.page.get_by_text("it continues where it stopped")).to_be_visible()
    ann.photograph("pipeline-run-failed")


@pytest.mark.slow
def test_a_verdict_is_read_at_any_width(ann: ConsoleVisitor) -> None:
    run = history_rows.verified()
    history_rows.run(
        Step.ROLLUP,
        RunState.FAILED,
        error="Spark ended: out of memory. Give SPARK_DRIVER_MEMORY=2g.",
    )
    history_rows.run(
        Step.EXPORT, result={"rows": {"messages": 12_000, "deliveries": 36_000}}, done=48_000
    )
    history_rows.archived()
    ann.page.goto("/admin/delivery/pipelinerun/")
    ann.photograph("pipeline-runs")
    ann.page.goto(f"/admin/delivery/pipelinerun/{run.pk}/change/")
    expect(ann.page.get_by_text("Broken here")).to_be_visible()
    ann.photograph("verify-broken")
    ann.page.goto("/admin/delivery/finding/")
    ann.photograph("findings")
    whole = history_rows.VERIFIED | {
        "verdict": "proven",
        "checks": [{"kind": "ORDER", "checked": 9, "broken": 0}],
    }
    PipelineRun.objects.filter(pk=run.pk).update(result=whole)
    ann.page.goto(f"/admin/delivery/pipelinerun/{run.pk}/change/")
    expect(ann.page.get_by_text("Proven", exact=True)).to_be_visible()
    ann.photograph("verify-proven")
    ann.page.goto("/admin/delivery/pipelineschedule/")
    ann.photograph("schedules")
    ann.page.get_by_role("link", name="export").first.click()
    ann.page.get_by_label("Interval (minutes)").wait_for()
    ann.photograph("schedule")


@pytest.mark.slow
def test_a_replay_is_requested_reviewed_and_started(ann: ConsoleVisitor) -> None:
    history_rows.archived()
    subscription = factories.subscription(filter="$$->'Header'->>'priority' = 'high'")
    ann.page.goto("/admin/delivery/replay/add/")
    ann.photograph("replay-subscription")
    ann.page.locator("#id_subscription").select_option(str(subscription.pk))
    ann.page.get_by_role("button", name="Next").click()
    expect(ann.page.get_by_label("Filter", exact=True)).to_have_value(subscription.filter)
    since = timezone.now() - timedelta(days=2)
    ann.page.get_by_label("Published since (UTC)").fill(f"{since:%Y-%m-%dT%H:%M:%S}")
    ann.photograph("replay-form")
    ann.page.get_by_role("button", name="Preview").click()
    expect(ann.page.get_by_role("heading", name="Selecting messages")).to_be_visible()
    replay = Replay.objects.get()
    ann.photograph("replay-selecting")
    ready = history_rows.replay(ReplayState.READY, subscription=subscription)
    found = {"state": "READY", "preview": ready.preview, "count": 42}
    Replay.objects.filter(pk=replay.pk).update(**found)
    expect(ann.page.get_by_text("42 messages would be delivered")).to_be_visible()
    ann.photograph("replay-ready")
    ann.page.once("dialog", lambda dialog: dialog.accept())
    ann.page.get_by_role("button", name="Deliver 42 messages").click()
    expect(ann.page.get_by_text("0 of 42 messages")).to_be_visible()
    Replay.objects.filter(pk=replay.pk).update(done=21, made=20)
    expect(ann.page.get_by_text("21 of 42 messages")).to_be_visible()
    ann.photograph("replay-running")
    ann.page.goto("/admin/delivery/replay/")
    ann.photograph("replays")


@pytest.mark.slow
def test_a_message_that_was_removed_is_found_in_the_archive(ann: ConsoleVisitor) -> None:
    history_rows.archived_message(settings.ENVIRONMENT.history_url)
    ann.page.goto("/admin/delivery/archivefile/")
    ann.photograph("archive")
    ann.page.get_by_label("Find a message").fill(f"msg_{ARCHIVED}")
    ann.page.get_by_role("button", name="Find by id").click()
    expect(ann.page.get_by_text("from the archive", exact=True)).to_be_visible()
    expect(ann.page.locator(".inturn-payload").last).to_contain_text('{"order": 42}')
    ann.photograph("archived-message")
    ann.page.goto("/admin/delivery/archivefile/lookup/")
    ann.photograph("archive-lookup")
    ann.page.goto("/admin/delivery/pipelinerun/report/")
    ann.photograph("report")
