"""`doctor` says which subscriptions are STOPPED or DOWN."""

import pytest

from delivery.management.doctor.findings import Severity
from delivery.management.doctor.standing import check_standing
from delivery.states import Status
from tests.support import factories
from tests.unit.delivery.console.blocking import block

pytestmark = pytest.mark.django_db


def test_all_is_well() -> None:
    factories.delivery()
    (finding,) = check_standing()
    assert finding.severity is Severity.OK
    assert finding.text == "0 subscriptions are STOPPED, 0 are DOWN"


def test_the_cause_of_each_is_named() -> None:
    head = factories.delivery()
    block(head)
    tried = factories.delivery(Status.FAILED)
    factories.endpoint_down(tried, lane_id=tried.subscription.subscriber.lane.pk)
    *each, total = check_standing()
    assert [finding.text for finding in each] == [
        f"{head.subscription} is STOPPED: unreachable: connection refused",
        f"{tried.subscription} is DOWN: 503: busy",
    ]
    assert total.text == "1 subscriptions are STOPPED, 1 are DOWN"
    assert {finding.severity for finding in (*each, total)} == {Severity.WARNING}
