"""The table itself refuses impossible rows from any writer."""

import uuid
from typing import Any

import pytest
from django.db import IntegrityError
from django.utils import timezone

from delivery.models import Delivery, Status
from delivery.states import OPEN
from tests.support import factories

NOW = timezone.now()
LEASE = {"lease_token": uuid.uuid4(), "lease_expires_at": NOW}
IMPOSSIBLE: dict[str, dict[str, Any]] = {
    "an unknown status": {"status": "SENT", "settled_at": NOW},
    "a settled one without its time": {"status": Status.DELIVERED},
    "an open one with such a time": {"status": Status.PENDING, "settled_at": NOW},
    "one in flight without a lease": {"status": Status.IN_FLIGHT},
    "a lease that never ends": {"status": Status.IN_FLIGHT, "lease_token": uuid.uuid4()},
    "a lease of one that is not in flight": {"status": Status.PENDING, **LEASE},
    "one skipped that was never tried": {"status": Status.PENDING, "skipped": True},
    "one skipped and settled": {
        "status": Status.REJECTED,
        "settled_at": NOW,
        "skipped": True,
        "attempts": 1,
    },
}


@pytest.mark.django_db
@pytest.mark.parametrize("fields", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_an_impossible_row_is_refused(fields: dict[str, Any]) -> None:
    delivery = factories.delivery()
    with pytest.raises(IntegrityError, match=r"delivery_is_possible|no partition"):
        Delivery.objects.filter(pk=delivery.pk).update(**fields)


@pytest.mark.django_db
@pytest.mark.parametrize("status", Status.values)
def test_each_status_is_possible(status: str) -> None:
    fields: dict[str, Any] = LEASE if status == Status.IN_FLIGHT else {}
    settled_at = None if status in OPEN else NOW
    delivery = factories.delivery()
    Delivery.objects.filter(pk=delivery.pk).update(status=status, settled_at=settled_at, **fields)
