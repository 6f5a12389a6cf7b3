"""Failures of a QUEUE group: who is notified, and when."""

import pytest

from delivery.models import Delivery, FailureNotice, Status
from delivery.support.resubmit import resubmit_delivery
from tests.support import factories
from tests.unit.delivery.api.client import caller, refused
from tests.unit.delivery.publishing.test_failures import failed, report, reported

pytestmark = pytest.mark.django_db


class TestGroups:
    def group(self, *statuses: Status, when: str = "GROUP") -> list[Delivery]:
        """Create a QUEUE message with a delivery of each status; failures have their notices."""
        queue = factories.event_type(kind="QUEUE", errors_when=when)
        message = factories.message(event_type=queue)
        return [
            (factories.delivery if status in (Status.PENDING, Status.DELIVERED) else failed)(
                status,
                message=message,
                subscription=factories.subscription(event_type=queue),
                queue_group=0,
            )
            for status in statuses
        ]

    def reported_of(self) -> list[int]:
        report()
        return [body["delivery"] for body in reported()]

    def test_only_the_last_endpoint_that_failed_is_reported(self) -> None:
        rows = self.group(Status.REJECTED, Status.FAILED, Status.EXPIRED)
        assert self.reported_of() == [rows[-1].pk]
        assert not FailureNotice.objects.exists()

    def test_each_is_reported_unless_the_event_type_says_so(self) -> None:
        rows = self.group(Status.REJECTED, Status.FAILED, when="DELIVERY")
        assert self.reported_of() == [row.pk for row in rows]

    @pytest.mark.parametrize("other", [Status.PENDING, Status.DELIVERED])
    def test_nothing_is_reported_if_another_takes_it_or_may(self, other: Status) -> None:
        self.group(Status.REJECTED, other)
        assert self.reported_of() == []

    def test_the_last_is_reported_when_the_others_were_left_to_it(self) -> None:
        first, second = self.group(Status.REJECTED, Status.PENDING)
        assert self.reported_of() == []
        factories.settle(second, Status.EXPIRED)
        FailureNotice.objects.create(delivery_id=second.pk, number=0)
        assert self.reported_of() == [second.pk]
        assert first.pk != second.pk

    def test_a_delivery_in_doubt_is_always_reported(self) -> None:
        doubtful, _ = self.group(Status.IN_DOUBT, Status.PENDING)
        assert self.reported_of() == [doubtful.pk]

    def test_a_second_failure_after_a_resubmission_is_reported(self) -> None:
        first, last = self.group(Status.REJECTED, Status.REJECTED)
        self.reported_of()
        resubmit_delivery(first.pk, actor="ann")
        assert Delivery.objects.get(pk=first.pk).status == Status.PENDING
        factories.settle(first, Status.FAILED)
        FailureNotice.objects.create(delivery_id=first.pk, number=2)
        assert self.reported_of() == [last.pk, first.pk]

    def test_other_groups_of_the_message_do_not_count(self) -> None:
        (row,) = self.group(Status.REJECTED)
        factories.delivery(
            message=row.message,
            subscription=factories.subscription(event_type=row.message.event_type),
            queue_group=1,
        )
        assert self.reported_of() == [row.pk]

    def test_a_topic_has_no_groups(self) -> None:
        answer = caller().post("event-types", {"name": "Topic", "errors_when": "GROUP"})
        assert "QUEUE" in refused(answer, 400)["detail"]
