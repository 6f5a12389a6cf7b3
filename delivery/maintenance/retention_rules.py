"""Until when what is settled has to be settled for retention to remove it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from delivery.models import Archived

# Beside the statuses: messages without deliveries, and the journal.
UNMATCHED, JOURNAL = "UNMATCHED", "JOURNAL"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRules:
    """The days by name, None for ever; and the archive's gate, None when nothing is archived yet."""

    days: Mapping[str, int | None]
    waits_for_archive: bool
    archived_until: datetime | None

    def until(self, *, now: datetime) -> dict[str, datetime]:
        """What was settled before may be removed, by status; of a message nobody wanted, what was published before.

        A status that is not in it is kept.
        """
        return {name: until for name, until in self._until(now).items() if name != JOURNAL}

    def journal_until(self, *, now: datetime) -> datetime | None:
        """What was noted before may be removed; None: nothing."""
        return self._until(now).get(JOURNAL)

    @property
    def waits_until(self) -> datetime | None:
        """What was settled at this moment or later waits for the archive; None: nothing does."""
        return self.archived_until if self.waits_for_archive else None

    def _until(self, now: datetime) -> dict[str, datetime]:
        gate = self.archived_until if self.waits_for_archive else now
        if gate is None:
            return {}
        return {
            name: min(gate, now - timedelta(days=days))
            for name, days in self.days.items()
            if days is not None
        }


def current() -> RetentionRules:
    """Return what the settings say, and the archive as it is now."""
    environment = settings.ENVIRONMENT
    return RetentionRules(
        days=environment.retention_days,
        waits_for_archive=not environment.retention_unarchived,
        archived_until=Archived.objects.values_list("until", flat=True).first(),
    )
