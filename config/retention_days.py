"""Retention period in days for each settled status, for unmatched messages and for the journal."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from config.env_values import wrong_value

SETTING = "INTURN_RETENTION_DAYS"
# None: for ever. Besides the settled statuses there are messages without a subscription, and the
# journal.
DEFAULT_DAYS: Mapping[str, int | None] = MappingProxyType(
    {
        "DELIVERED": 30,
        "REDUNDANT": 30,
        "DUPLICATE": 30,
        "SHADOW": 30,
        "CANCELLED": 90,
        "EXPIRED": 90,
        "REJECTED": 90,
        "3xxNOTSUPPORTED": 90,
        "FAILED": 90,
        "IN_DOUBT": None,
        "UNMATCHED": 30,
        "JOURNAL": 365,
    }
)
NEVER = "never"
LONGEST_DAYS = 36_500

_NAMES = {name.lower(): name for name in DEFAULT_DAYS}
_ALLOWED = (
    f"like DELIVERED=7,FAILED=never: names among {', '.join(DEFAULT_DAYS)}, each once, "
    f"with days from 1 to {LONGEST_DAYS} or {NEVER}; or {NEVER} alone, which keeps everything"
)


def retention_days(items: Iterable[str]) -> Mapping[str, int | None]:
    """Return the days of all names: those given as `NAME=days`, and defaults for the others.

    Raises ImproperlyConfigured for an invalid item.
    """
    items = list(items)
    if [item.lower() for item in items] == [NEVER]:
        return dict.fromkeys(DEFAULT_DAYS)
    configured: dict[str, int | None] = {}
    for item in items:
        name, days = _read(item)
        if name in configured:
            raise wrong_value(SETTING, item, allowed=_ALLOWED)
        configured[name] = days
    return {**DEFAULT_DAYS, **configured}


def _read(item: str) -> tuple[str, int | None]:
    name, _, text = (part.strip() for part in item.partition("="))
    if name.lower() in _NAMES:
        if text.lower() == NEVER:
            return _NAMES[name.lower()], None
        if re.fullmatch(r"[0-9]{1,5}", text) and 1 <= int(text) <= LONGEST_DAYS:
            return _NAMES[name.lower()], int(text)
    raise wrong_value(SETTING, item, allowed=_ALLOWED)
