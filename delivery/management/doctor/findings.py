"""A finding: the result of a check, with advice."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """The importance of a finding, in the order of the report."""

    FAILED = "FAILED"
    WARNING = "WARNING"
    OK = "OK"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of a check. `advice` is empty if there is nothing to do."""

    check: str
    severity: Severity
    text: str
    advice: str = ""


def check_report(findings: Iterable[CheckResult]) -> Iterator[str]:
    """Yield a line for each finding, worst first, with the advice on a separate line."""
    ranks = list(Severity)
    for finding in sorted(findings, key=lambda finding: ranks.index(finding.severity)):
        yield f"{finding.severity:<8} {finding.check:<14} {finding.text}"
        if finding.advice:
            yield f"{'':<23} → {finding.advice}"
