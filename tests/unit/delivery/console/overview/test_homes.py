"""The first page by role: the proof and reports for auditors, failures for Support."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from delivery.console.pipeline.presets import report_presets
from delivery.models import Step
from delivery.states import Status
from tests.support import factories
from tests.unit.delivery.console import history_rows

PROVEN_RESULT = {
    "verdict": "proven",
    "since": "2026-11-25T08:29:00+00:00",
    "until": "2026-11-26T08:29:00+00:00",
    "deliveries": 1826,
    "checks": [{"kind": "ORDER", "checked": 9, "broken": 0, "explained": {"resubmitted": 277}}],
}


def home_of(role: str) -> str:
    user = User.objects.create_user("visitor", is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    client = Client()
    client.force_login(user)
    return client.get("/admin/").text


@pytest.mark.django_db
class TestAuditors:
    def test_begin_with_the_proof_and_reports(self) -> None:
        run = history_rows.run(Step.VERIFY, result=PROVEN_RESULT)
        page = " ".join(home_of("Auditors").split())
        assert "Order proven until" in page
        assert "2026-11-26 08:29 UTC" in page
        assert "1,826 deliveries checked since the last proof, nothing lost" in page
        assert "277 explained exceptions" in page
        assert f'href="/admin/delivery/pipelinerun/{run.pk}/change/"' in page
        assert "Report: Last quarter" in page

    def test_are_informed_when_nothing_was_verified(self) -> None:
        assert "Nothing has been verified yet" in home_of("Auditors")

    def test_see_that_the_order_was_broken(self) -> None:
        history_rows.verified()
        page = home_of("Auditors")
        assert "History broken here" in page
        assert "Order proven" not in page


@pytest.mark.django_db
def test_support_begins_with_what_failed() -> None:
    subscription = factories.subscription("orders")
    earlier = timezone.now() - timedelta(hours=2)
    old = factories.message(event_type=subscription.event_type, published_at=earlier)
    factories.delivery(Status.REJECTED, subscription=subscription, message=old)
    for _ in range(7):
        factories.delivery(Status.REJECTED, subscription=subscription)
    factories.delivery(Status.DELIVERED, subscription=subscription)
    incident = factories.incident(factories.delivery(subscription=subscription))
    page = home_of("Support")
    assert "Failed, of the messages of the last hour" in page
    assert page.count(f'href="/admin/delivery/incident/{incident.pk}/"') == 1
    address = (
        f"/admin/delivery/delivery/?subscription={subscription.pk}&amp;tab=failed&amp;since=1h"
    )
    assert f'{address}">7</a>' in page
    assert "Report: Yesterday" not in page


@pytest.mark.django_db
def test_administrators_begin_with_the_board() -> None:
    page = home_of("Administrators")
    assert "Stopped subscribers" in page
    assert "Failed, of the messages" not in page


@pytest.mark.parametrize(
    ("now", "month", "quarter"),
    [
        (datetime(2026, 1, 1, tzinfo=UTC), (2025, 12), ((2025, 10), (2026, 1))),
        (datetime(2026, 11, 26, 23, 59, tzinfo=UTC), (2026, 10), ((2026, 7), (2026, 10))),
        (datetime(2026, 3, 31, 12, tzinfo=UTC), (2026, 2), ((2025, 10), (2026, 1))),
    ],
)
def test_presets_are_whole_days_months_and_quarters(
    now: datetime, month: tuple[int, int], quarter: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    yesterday, last_month, last_quarter = report_presets(now)
    assert (now - yesterday.until).days == 0
    assert (yesterday.until - yesterday.since).days == 1
    assert last_month.since == datetime(*month, 1, tzinfo=UTC)
    assert last_month.until == datetime(now.year, now.month, 1, tzinfo=UTC)
    assert (last_quarter.since, last_quarter.until) == tuple(
        datetime(*of, 1, tzinfo=UTC) for of in quarter
    )


def test_a_preset_fills_in_the_form(ann: Client) -> None:
    (yesterday, *_) = report_presets(timezone.now())
    page = ann.get(yesterday.address).text
    assert f'value="{yesterday.since:%Y-%m-%dT%H:%M}"' in page
