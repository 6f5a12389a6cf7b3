"""A finding: the result of one check, and what to do about it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters; the order is that of the report."""

    FAILED = "FAILED"
    WARNING = "WARNING"
    OK = "OK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`advice` is empty when there is nothing to do."""

    check: str
    severity: Severity
    text: str
    advice: str = ""


def report(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield a line for each finding, the worst first, with the advice on a line of its own."""
    ranks = list(Severity)
    for finding in sorted(findings, key=lambda finding: ranks.index(finding.severity)):
        yield f"{finding.severity:<8} {finding.check:<14} {finding.text}"
        if finding.advice:
            yield f"{'':<23} → {finding.advice}"
