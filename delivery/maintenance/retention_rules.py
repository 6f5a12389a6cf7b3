"""Times before which deliveries must be settled for retention to remove them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from delivery.models import Archived

# In addition to the statuses: messages without deliveries, and the journal.
UNMATCHED, JOURNAL = "UNMATCHED", "JOURNAL"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRules:
    """The retention days by name (None: for ever) and the archive's watermark, None at first."""

    days: Mapping[str, int | None]
    waits_for_archive: bool
    archived_until: datetime | None

    def until(self, *, now: datetime) -> dict[str, datetime]:
        """Return the time before which deliveries must be settled, by status.

        For unmatched messages it is the time before which they must be published. A status without
        an entry is kept.
        """
        return {name: until for name, until in self._until(now).items() if name != JOURNAL}

    def journal_until(self, *, now: datetime) -> datetime | None:
        """Return the time before which journal entries may be removed; None to keep all."""
        return self._until(now).get(JOURNAL)

    @property
    def waits_until(self) -> datetime | None:
        """Return the time from which settled deliveries wait for the archive; None if none wait."""
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


def current_rules() -> RetentionRules:
    """Return the rules of the settings and the archive's current watermark."""
    environment = settings.ENVIRONMENT
    return RetentionRules(
        days=environment.retention_days,
        waits_for_archive=not environment.retention_unarchived,
        archived_until=Archived.objects.values_list("until", flat=True).first(),
    )
