"""The usual ranges of reports: whole days, months and ended quarters, in UTC."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from django.urls import reverse


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    title: str
    since: datetime
    until: datetime

    @property
    def address(self) -> str:
        """The address of the form of reports with this range."""
        query = {"since": f"{self.since:%Y-%m-%dT%H:%M}", "until": f"{self.until:%Y-%m-%dT%H:%M}"}
        return f"{reverse('admin:delivery_pipelinerun_report')}?{urlencode(query)}"


def report_presets(now: datetime) -> list[Preset]:
    """Return yesterday, the last month and the last quarter, without their ends."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    month = today.replace(day=1)
    quarter = month.replace(month=(month.month - 1) // 3 * 3 + 1)
    return [
        Preset(title="Yesterday", since=today - timedelta(days=1), until=today),
        Preset(title="Last month", since=_months_before(month, 1), until=month),
        Preset(title="Last quarter", since=_months_before(quarter, 3), until=quarter),
    ]


def _months_before(first_of_month: datetime, count: int) -> datetime:
    months = first_of_month.year * 12 + first_of_month.month - 1 - count
    return first_of_month.replace(year=months // 12, month=months % 12 + 1)
