"""The outcomes of an incident's failed deliveries."""

from dataclasses import dataclass

from delivery.database.queries import named_rows
from delivery.lifecycle.transitions import RESUBMITTABLE
from delivery.models import Incident, Status

# More are not counted.
OUTCOMES_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class FailureOutcomes:
    """The numbers of deliveries by status, the most first; together at most OUTCOMES_LIMIT."""

    counts: dict[str, int]

    @property
    def resubmittable(self) -> int:
        """How many a resubmission would send again."""
        return sum(
            count
            for status, count in self.counts.items()
            if status in RESUBMITTABLE and status != Status.IN_DOUBT
        )

    @property
    def is_all(self) -> bool:
        return sum(self.counts.values()) < OUTCOMES_LIMIT


def read_outcomes(incident: Incident) -> FailureOutcomes:
    rows = named_rows("incident_outcomes", {"incident": incident.pk, "limit": OUTCOMES_LIMIT})
    return FailureOutcomes({row["status"]: row["count"] for row in rows})
