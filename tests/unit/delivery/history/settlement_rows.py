"""Settlements for tests of the archive: made as a sender or a person makes them, and read."""

import psycopg
from django.db import transaction
from django.utils import timezone
from psycopg.conninfo import make_conninfo

from delivery.database.connections import connection_parameters
from delivery.history.job import StepJob
from delivery.history.schemas import ATTEMPTS, DELIVERIES
from delivery.history.steps.verify import verify_history
from delivery.models import Delivery, OutcomeClass, PipelineRun, Step
from delivery.senders.commits.commit_statements import commit_statements
from delivery.states import Status
from delivery.support import bulk_jobs, resubmit
from delivery.verdict import NextStep, Verdict
from tests.unit.delivery.history.exporting import rows
from tests.unit.delivery.senders.entries import settlement

ANN = "ann"
ANSWERS = {
    Status.DELIVERED: (OutcomeClass.SUCCESS, 200),
    Status.REJECTED: (OutcomeClass.CLIENT_ERROR, 410),
    Status.FAILED: (OutcomeClass.SERVER_ERROR, 500),
}
Found = list[tuple[str, list[int]]]


def try_once(delivery: Delivery, status: Status) -> None:
    """Settle it as a sender does, by one more attempt."""
    delivery.refresh_from_db()
    outcome, status_code = ANSWERS[status]
    verdict = Verdict(status=status, step=NextStep.NEXT)
    entry = settlement(delivery, verdict=verdict, outcome=outcome, status_code=status_code)
    with psycopg.connect(make_conninfo(**connection_parameters())) as sender:
        for text, parameters in commit_statements([entry]):
            sender.execute(text.encode(), parameters)


def resubmitted(delivery: Delivery) -> None:
    resubmit.resubmit_delivery(delivery.pk, actor=ANN)


def resubmitted_by_a_filter(delivery: Delivery) -> None:
    job = bulk_jobs.start_job(
        {"subscriber": delivery.subscription.subscriber.name}, rate=None, actor=ANN
    )
    while job.state == "RUNNING":
        with transaction.atomic():
            assert bulk_jobs.advance_job(timezone.now())
        job.refresh_from_db()


def settlements(job: StepJob, delivery: Delivery) -> Found:
    """Return a delivery's archived settlements in order, with their attempts' numbers."""
    attempts = rows(job, ATTEMPTS)
    return [
        (
            row["status"],
            [
                attempt["number"]
                for attempt in attempts
                if attempt["delivery_id"] == delivery.pk
                and attempt["settled_at"] == row["settled_at"]
            ],
        )
        for row in rows(job, DELIVERIES)
        if row["id"] == delivery.pk
    ]


def verdict(job: StepJob) -> str:
    PipelineRun.objects.get_or_create(pk=job.run_id, defaults={"step": Step.REPORT})
    return str(verify_history(job)["verdict"])
