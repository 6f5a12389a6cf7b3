"""Parcels as a lane reads them, for tests without a database."""

from delivery.senders.parcel import Parcel
from delivery.senders.run_result import RunResult


def parcel(place: int, *, delivery_id: int | None = None, size: int = 10) -> Parcel:
    """Return one for the endpoint of that subscription."""
    return Parcel(
        delivery_id=place if delivery_id is None else delivery_id,
        subscription_id=place,
        message_id=1,
        attempts=0,
        attempts_before=0,
        is_skipped=False,
        redelivery="",
        event="Test.Event",
        content_type="",
        body=b"." * size,
    )


def run_of(*, fresh: int, skipped: int = 0, is_cut: bool = False, most: int = 500) -> RunResult:
    """Return a run whose only piece has so many deliveries; `is_cut`: there may be more."""
    run = RunResult(most=most)
    run.add(run.limits(most), fresh=fresh, skipped=skipped, is_cut=is_cut)
    return run
