"""Verify: checks README's promises over the whole history, or over the new rows since a proof.

The result is "proven", or "broken here" with the rows. A run that proves the history leaves a proof
(see `archive.proof`), and the next run checks the new rows with the earlier rows related to them
(see `checks.since_proof`):

    no proof ────────────▶ check everything ──▶ proven, with a proof; or broken, without
    a proof ─▶ check the new rows ─▶ proven, with a new proof
                     │
                     └─ something is broken, or missing ─▶ check everything

The proof is part of the run's result: if the run is killed, the next begins where it began. The
findings of a run, at most MOST_FINDINGS of each kind, are written in a transaction at the end; the
result has their total number.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from delivery.database.statements import statement
from delivery.history import schemas
from delivery.history.archive import ledger
from delivery.history.archive.losses import is_about_files, look_at_folder
from delivery.history.archive.proof import (
    DeliverySet,
    HistoryProof,
    ProofLostError,
    last_proof,
    row_counts,
)
from delivery.history.checks.attempts import check_attempts, tried_counts
from delivery.history.checks.finding import COLUMNS, FILES, KINDS, broken_counts, findings
from delivery.history.checks.groups import check_groups, group_counts
from delivery.history.checks.order import (
    deliveries_of_suspect_lanes,
    late_deliveries,
    mark_suspects,
    order_counts,
    ordered_deliveries,
    overtaken_deliveries,
)
from delivery.history.checks.owed_deliveries import check_owed, owed_counts
from delivery.history.checks.since_proof import left_by, never_archived
from delivery.history.job import StepJob
from delivery.history.spark import frames
from delivery.history.steps.checked_history import CheckedHistory, checked_history
from subscriptions.values.times import time_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MOST_FINDINGS = 1_000
# Damaged files named in the result itself.
MOST_NAMED = 20
PROVEN, BROKEN = "proven", "broken here"
Counts = dict[str, int]


class FullCheckError(Exception):
    """The new rows since a proof are not proven: the whole history has to be checked.

    The message says why.
    """


class Judgement:
    """The findings of the checks so far."""

    def __init__(self) -> None:
        self.broken = dict.fromkeys(KINDS, 0)
        self.findings: list[tuple[Any, ...]] = []

    def add(self, kind: str, texts: Iterable[str]) -> None:
        """Add findings without message and delivery."""
        for text in texts:
            if self.broken[kind] < MOST_FINDINGS:
                self.findings.append((kind, text, None, None, None))
            self.broken[kind] += 1

    def add_files(self, history: CheckedHistory) -> None:
        """Add the findings about the archive's files; those of later exports are not broken."""
        report = history.report
        self.add(FILES, [*report.damages.values(), *report.losses, *report.strangers])
        self.findings += [(FILES, text, None, None, None) for text in report.later[:MOST_FINDINGS]]

    def judge(self, frame: "DataFrame", counts: "Column | None" = None) -> dict[str, Any]:
        """Add the findings in `broken` of the frame, and return the counts."""
        columns = [broken_counts().alias("broken")] + (
            [] if counts is None else [counts.alias("counts")]
        )
        row = frame.agg(*columns).first()
        assert row is not None
        for kind, count in row["broken"].asDict().items():
            if count:
                room = max(MOST_FINDINGS - self.broken[kind], 0)
                rows = findings(frame).filter(f"kind = '{kind}'").limit(room)
                self.findings += map(tuple, rows.collect())
                self.broken[kind] += count
        return {} if counts is None else row["counts"].asDict(recursive=True)


def verify_history(job: StepJob, *, whole: bool = False) -> dict[str, Any]:
    """Check the history and write the findings; return the verdict and all counts.

    With `whole`, or without a valid proof, it checks everything. Only such a run finds something
    broken. `covers` describes the checked part, and why it is everything; `since` is the time until
    which an earlier run had proven the history, None after a check of everything.
    """
    proof = None if whole else last_proof(job.database)
    if proof is None:
        return _verified(job, None)
    try:
        return _nothing_new(job, proof) or _verified(job, proof)
    except (FullCheckError, ProofLostError) as error:
        reason = str(error)
    except Exception as error:
        if not is_about_files(error):
            raise
        reason = "a file of the archive cannot be read"
    job.progress.doing(f"checking everything: {reason}")
    result = _verified(job, None)
    return result | {"covers": f"{result['covers']}, because {reason}"}


def _verified(job: StepJob, proof: HistoryProof | None) -> dict[str, Any]:
    """Check everything, or the new rows since the proof; raises FullCheckError, ProofLostError."""
    judgement = Judgement()
    with checked_history(job, proof) as history:
        judgement.add_files(history)
        counts = _checked(job, history, judgement, proof)
    broken = judgement.broken
    attempts = counts["attempts"]
    if proof is not None:
        _require_sound(proof, broken, DeliverySet(**attempts["left"]))
    _write(job, judgement)
    tried = attempts["tried"]
    result = {
        "verdict": BROKEN if any(broken.values()) else PROVEN,
        "covers": _covered(proof) + history.report.limits,
        "messages": counts["owed"]["messages"],
        "deliveries": tried["deliveries"],
        "attempts": tried["attempts"],
        "since": proof and proof.until.isoformat(),
        "until": history.until.isoformat() if history.until else None,
        "checks": [
            _check("ORDER", counts["order"], broken),
            _check("TWICE", _some(tried, checked="succeeded", sent_again="sent_again"), broken),
            _check("OWED", counts["owed"], broken),
            _check("GROUP", counts["groups"], broken),
            _check("GAPS", _some(tried, checked="deliveries", lost="lost"), broken),
            _check("STRAY", _some(tried, checked="attempts"), broken),
            _check("FILES", history.report.counts, broken),
        ],
        "damaged_files": sorted(history.report.damages)[:MOST_NAMED],
    }
    if proof is None:
        result["rows_equal_to_postgresql"] = history.report.compared
        result["rows_only_archived"] = history.report.uncompared
    if history.until is not None and not any(broken.values()):
        result["proof"] = HistoryProof(
            run_id=job.run_id,
            until=history.until,
            snapshot=history.visible,
            rows=row_counts(history.files),
            unarchived=DeliverySet(**attempts["unarchived"]),
        ).as_json()
    return result


def _require_sound(proof: HistoryProof, broken: Counts, left: DeliverySet) -> None:
    """Raise FullCheckError if something is broken, or if `left` differs from the proof's rest."""
    if any(broken.values()):
        raise FullCheckError(f"something is broken since the proof of run {proof.run_id}")
    if left != proof.unarchived:
        raise FullCheckError(
            f"the deliveries that were not archived at the proof of run {proof.run_id} are not "
            "all there"
        )


def _checked(
    job: StepJob, history: CheckedHistory, judgement: Judgement, proof: HistoryProof | None
) -> dict[str, Any]:
    """Make all checks; return the counts of each."""
    from pyspark.sql import functions as sql

    job.progress.doing("checking attempts")
    counted = [tried_counts().alias("tried"), never_archived().alias("unarchived")]
    if proof is not None:
        counted.append(left_by(proof).alias("left"))
    attempts = judgement.judge(check_attempts(history.judged), sql.struct(*counted))
    job.progress.advance(attempts["tried"]["attempts"], attempts["tried"]["attempts"])
    job.progress.doing("checking the order of each subscriber")
    turns = mark_suspects(ordered_deliveries(history.known, history.holds))
    order = _counts(turns, order_counts())
    if order.pop("suspects"):
        job.progress.doing("checking suspected violations of order")
        _judge_order(judgement, deliveries_of_suspect_lanes(turns))
    job.progress.doing("checking groups")
    groups = judgement.judge(check_groups(history.judged), group_counts())
    job.progress.doing("checking that nothing is missing")
    owed = judgement.judge(check_owed(history.messages, history.judged), owed_counts())
    return {"attempts": attempts, "order": order, "groups": groups, "owed": owed}


def _nothing_new(job: StepJob, proof: HistoryProof) -> dict[str, Any] | None:
    """Return the result if there is nothing to check, without Spark; None if there is."""
    with job.database.transaction():
        job.database.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        row = job.database.execute(statement("new_since_proof"), {"until": proof.until}).fetchone()
        until = ledger.archived_until(job.database)
        files = {table.name: ledger.files(job.database, table.name) for table in schemas.TABLES}
    assert row is not None
    has_new, visible = row
    no_findings = dict.fromkeys(KINDS, 0)
    if has_new or proof.unarchived.deliveries or until is None:
        return None
    if not proof.holds(files, until=until, added={}):
        return None
    report = look_at_folder(job.archive, job.database, files)
    report.require_sound()
    return {
        "verdict": PROVEN,
        "covers": _covered(proof),
        "messages": 0,
        "deliveries": 0,
        "attempts": 0,
        "since": proof.until.isoformat(),
        "until": until.isoformat(),
        "checks": [
            _check(kind, report.counts if kind == FILES else {"checked": 0}, no_findings)
            for kind in KINDS
        ],
        "damaged_files": [],
        "proof": HistoryProof(
            run_id=job.run_id,
            until=until,
            snapshot=visible,
            rows=row_counts(files),
            unarchived=DeliverySet(),
        ).as_json(),
    }


def _covered(proof: HistoryProof | None) -> str:
    if proof is None:
        return "the whole history"
    return f"the new rows since {time_text(proof.until)}; until then run {proof.run_id} proved it"


def _judge_order(judgement: Judgement, turns: "DataFrame") -> None:
    with (
        frames.kept_frame(turns) as numbered,
        frames.kept_frame(late_deliveries(numbered)) as found,
    ):
        judgement.judge(overtaken_deliveries(found, numbered))


def _counts(frame: "DataFrame", counts: "Column") -> Counts:
    row = frame.agg(counts.alias("counts")).first()
    assert row is not None
    result: Counts = row["counts"].asDict()
    return result


def _some(counts: Mapping[str, int], **names: str) -> Counts:
    return {name: counts[known_as] for name, known_as in names.items()}


def _check(kind: str, counts: Counts, broken: Counts) -> dict[str, Any]:
    explained = {
        name: count for name, count in counts.items() if name not in ("checked", "messages")
    }
    return {
        "kind": kind,
        "checked": counts["checked"],
        "explained": explained,
        "broken": broken[kind],
    }


def _write(job: StepJob, judgement: Judgement) -> None:
    job.progress.doing("writing the findings")
    with job.database.transaction(), job.database.cursor() as cursor:
        cursor.execute(statement("forget_findings"), {"run": job.run_id})
        with cursor.copy(
            f"COPY delivery_finding (run_id, {', '.join(COLUMNS)}) FROM STDIN"
        ) as copy:
            for row in judgement.findings:
                copy.write_row((job.run_id, *row))
