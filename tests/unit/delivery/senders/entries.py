"""Entries as a lane commits them, made of rows of the test database."""

from datetime import UTC, datetime

from delivery.models import Delivery, OutcomeClass, Status
from delivery.outcome import Outcome
from delivery.senders.entries import Run, Settlement
from delivery.verdict import NextStep, Verdict

DELIVERED = Verdict(status=Status.DELIVERED, step=NextStep.NEXT)


def settlement(
    row: Delivery,
    *,
    verdict: Verdict = DELIVERED,
    counted_subscription_id: int | None = None,
    **fields: object,
) -> Settlement:
    given = {"outcome": OutcomeClass.SUCCESS, "status_code": 200} | fields
    outcome = Outcome(
        started_at=datetime.now(UTC),
        duration_ms=3,
        **given,  # type: ignore[arg-type]
    )
    return Settlement(
        lane_id=row.lane_id or 0,
        delivery_id=row.pk,
        number=row.attempts + 1,
        verdict=verdict,
        outcome=outcome,
        counted_subscription_id=counted_subscription_id,
    )


def run_of(*rows: Delivery) -> Run:
    return Run(
        lane_id=rows[0].lane_id or 0,
        ids=tuple(row.pk for row in rows),
        attempts=tuple(row.attempts for row in rows),
    )
