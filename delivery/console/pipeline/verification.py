"""The result of a VERIFY run: verdict, checks with explained cases, findings with their rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from delivery.models import Delivery, Finding, PipelineRun, RunState, Step

SHOWN = 50
# The keys are the checks' names in `delivery.history.steps.verify`.
_WORDS = {
    "ORDER": "First attempts are in the order of publication",
    "TWICE": "Nothing was delivered twice",
    "OWED": "Every accepted message has all its deliveries",
    "GROUP": "At most one delivery per QUEUE group was delivered",
    "GAPS": "No attempt is missing, and nothing was overtaken",
    "STRAY": "The archive has each row once, and no row without its message or delivery",
    "FILES": "Every file of the archive is there, as it was exported, and no other",
}
PROVEN = "proven"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check; `explained` counts, by reason, the seemingly broken cases."""

    kind: str
    words: str
    checked: int
    broken: int
    explained: list[tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    is_proven: bool
    checks: list[Check]
    findings: list[Finding]
    more: bool

    @property
    def broken(self) -> int:
        return sum(check.broken for check in self.checks)


def read_verification(run: PipelineRun) -> Verification | None:
    """Return the result; None unless it is a done VERIFY run."""
    if run.step != Step.VERIFY or run.state != RunState.DONE:
        return None
    findings = list(Finding.objects.filter(run=run).order_by("id")[: SHOWN + 1])
    return Verification(
        is_proven=str(run.result.get("verdict", "")).lower() == PROVEN,
        checks=[_check(check) for check in run.result.get("checks", [])],
        findings=with_existence(findings[:SHOWN]),
        more=len(findings) > SHOWN,
    )


def with_existence(findings: Sequence[Any]) -> list[Any]:
    """Mark for each finding which deliveries of it have a page; others are only in the archive."""
    named = {id for finding in findings for id in _deliveries(finding)}
    existing = set(Delivery.objects.filter(pk__in=named).values_list("pk", flat=True))
    for finding in findings:
        finding.deliveries = [(id, id in existing) for id in _deliveries(finding)]
    return list(findings)


def _deliveries(finding: Finding) -> Iterable[int]:
    return [id for id in (finding.delivery_id, finding.other_delivery_id) if id is not None]


def _check(check: dict[str, Any]) -> Check:
    explained = check.get("explained") or {}
    return Check(
        kind=check["kind"],
        words=_WORDS.get(check["kind"], check["kind"].lower().replace("_", " ")),
        checked=check.get("checked", 0),
        broken=check.get("broken", 0),
        explained=[
            (reason.replace("_", " "), count) for reason, count in explained.items() if count
        ],
    )
