"""Fixtures of several subjects."""

import pytest

from delivery.models import IncidentKind, IncidentRule


@pytest.fixture
def any_disk(db: None) -> None:
    """Open no incident of the machine's disk, which may be nearly full."""
    IncidentRule.objects.filter(pk=IncidentKind.DISK).update(is_on=False)
