"""Many deliveries are resubmitted or cancelled in the console: counted first, then by a job."""

import pytest
from django.test import Client
from django.utils import timezone

from delivery.models import Resubmission, Status
from delivery.support.bulk_jobs import advance_job
from tests.support import factories
from tests.unit.delivery.console.deliveries.test_actions_resubmitting import (
    DELIVERY,
    RESUBMISSION,
    posted,
)
from tests.unit.delivery.console.refreshing import refresh
from tests.unit.delivery.support.test_bulk_jobs_resubmissions import rejected
from tests.unit.delivery.support.test_resubmit import now_of


class TestManyInTheConsole:
    def test_the_list_leads_to_a_count_with_its_filters(self, ann: Client, db: None) -> None:
        first, *_ = rejected(3)
        factories.delivery(Status.FAILED)
        page = ann.get(f"{DELIVERY}/?status=REJECTED&since=2026-05-04T10%3A00&q=").text
        address = f"{RESUBMISSION}/add/?status=REJECTED&amp;since=2026-05-04T10%3A00"
        assert f'href="{address}"' in page
        counted = ann.get(address.replace("&amp;", "&")).text
        assert "3 deliveries would be resubmitted" in counted
        assert f">delivery {first.pk}<" in counted
        assert not Resubmission.objects.exists()

    def test_a_job_is_started_watched_and_done(self, ann: Client, db: None) -> None:
        rejected(3)
        page = posted(ann, f"{RESUBMISSION}/add/?status=REJECTED", status="REJECTED", rate="2")
        job = Resubmission.objects.get()
        assert (job.filter, job.rate, job.actor, job.count) == (
            {"status": ["REJECTED"]},
            2,
            "ann",
            3,
        )
        assert "0 of 3" in page
        address = f"{RESUBMISSION}/{job.pk}/change/"
        assert 'id="resubmission" hx-get=""' in page
        advance_job(timezone.now())
        assert "2 of 3" in refresh(ann, address).text
        advance_job(timezone.now().replace(year=2099))
        ended = refresh(ann, address).text
        assert "DONE" in ended
        # The page of an ended job does not poll.
        assert "hx-get" not in ended
        assert f"{job.pk}" in ann.get(f"{RESUBMISSION}/").text

    def test_a_job_is_cancelled_once(self, ann: Client, db: None) -> None:
        factories.subscriber("crm")
        posted(ann, f"{RESUBMISSION}/add/", subscriber="crm")
        job = Resubmission.objects.get()
        assert "Stopped after 0" in posted(ann, f"{RESUBMISSION}/{job.pk}/cancel/")
        assert "Nothing was done" in posted(ann, f"{RESUBMISSION}/{job.pk}/cancel/")

    def test_many_are_cancelled_after_counting(self, ann: Client, db: None) -> None:
        row, doubtful = factories.delivery(), factories.delivery(Status.IN_DOUBT)
        page = ann.get(f"{DELIVERY}/?subscriber={row.subscription.subscriber.name}").text
        query = f"verb=CANCEL&amp;subscriber={row.subscription.subscriber.name}"
        assert f'href="{RESUBMISSION}/add/?{query}"' in page
        address = f"{RESUBMISSION}/add/?verb=CANCEL&status=PENDING"
        counted = ann.get(address).text
        assert "1 delivery would be cancelled" in counted
        assert "the oldest was published" in counted
        page = posted(ann, address, status="PENDING")
        job = Resubmission.objects.get()
        assert (job.verb, job.filter, job.count) == ("CANCEL", {"status": ["PENDING"]}, 1)
        assert f"Cancellation {job.pk}" in page
        advance_job(timezone.now())
        assert "1 cancelled." in ann.get(f"{RESUBMISSION}/{job.pk}/change/").text
        assert [now_of(delivery).status for delivery in (row, doubtful)] == [
            Status.CANCELLED,
            Status.IN_DOUBT,
        ]

    @pytest.mark.parametrize(
        ("status", "offered"),
        [
            ("", (True, True)),
            ("REJECTED", (True, False)),
            ("PENDING", (False, True)),
            ("IN_DOUBT", (True, True)),
        ],
    )
    def test_only_statuses_that_may_be_resubmitted_are_offered(
        self, ann: Client, db: None, status: str, offered: tuple[bool, bool]
    ) -> None:
        page = ann.get(f"{DELIVERY}/?status={status}").text
        assert ("Resubmit all" in page, "Cancel all" in page) == offered

    def test_the_count_shows_each_status(self, ann: Client, db: None) -> None:
        rejected(2)
        factories.delivery(Status.FAILED)
        page = ann.get(f"{RESUBMISSION}/add/?since=2026-01-01T00:00").text
        counted = page.partition("3 deliveries would be resubmitted")[2]
        assert counted.index("REJECTED") < counted.index("FAILED")

    @pytest.mark.parametrize(
        ("query", "said"),
        [
            ("verb=CANCEL&status=REJECTED", "Select a valid choice"),
            ("verb=CANCEL&message=msg_999", "No deliveries to cancel"),
            ("status=", "Choose at least one"),
            ("message=x", "Give the id of a message"),
            ("since=x", "Enter a valid date/time"),
            ("status=DELIVERED", "Select a valid choice"),
            ("message=msg_999", "No deliveries to resubmit"),
            ("subscriber=nobody", "There is no subscriber &#x27;nobody&#x27;."),
        ],
    )
    def test_a_wrong_filter_is_reported(self, ann: Client, query: str, said: str) -> None:
        assert said in ann.get(f"{RESUBMISSION}/add/?{query}").text

    def test_a_wrong_rate_is_reported_with_the_count(self, ann: Client, db: None) -> None:
        rejected(2)
        page = posted(ann, f"{RESUBMISSION}/add/", status="REJECTED", rate="fast")
        assert "2 deliveries would be resubmitted" in page
        assert "Enter a number" in page
        assert not Resubmission.objects.exists()

    def test_everything_at_once_is_not_started(self, ann: Client) -> None:
        posted(ann, f"{RESUBMISSION}/add/", rate="5")
        assert not Resubmission.objects.exists()
