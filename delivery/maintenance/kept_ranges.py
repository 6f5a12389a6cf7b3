"""Ranges of messages of which nothing can be removed for a while: passes skip them.

After a pass has removed all it can, a range has the messages with a delivery kept longer. To look
up each of them again, in each pass, would take time proportional to all stored messages.
"""

from datetime import datetime, timedelta

import orjson

from delivery.database import queries
from delivery.maintenance.retention_ranges import range_bounds
from delivery.maintenance.retention_rules import JOURNAL, UNMATCHED, RetentionRules
from delivery.models import MessageRange

# By range and rules, the time before which nothing can be removed: of this process, so the first
# pass after a start looks it up.
_kept_until: dict[tuple[object, ...], datetime] = {}


def is_known_kept(kept: MessageRange, rules: RetentionRules, *, now: datetime) -> bool:
    """Return whether by an earlier look-up nothing of the range can be removed yet."""
    until = _kept_until.get(_key(kept, rules))
    return until is not None and now < until


def is_kept(kept: MessageRange, rules: RetentionRules, *, now: datetime) -> bool:
    """Look up whether nothing of the range can be removed yet; the answer is remembered."""
    days = {
        name: number
        for name, number in rules.days.items()
        if number is not None and name != JOURNAL
    }
    if not days:
        return True
    parameters = {
        "days": orjson.dumps(days).decode(),
        "unmatched_days": days.get(UNMATCHED),
        **range_bounds(kept),
    }
    with queries.preferring_hash_joins():
        (ripe_at,) = queries.row("ripe_from", parameters)
    # A delivery settled from now on, by anybody, can be removed after the fewest days.
    until = now + timedelta(days=min(days.values()))
    for key in [key for key, passed in _kept_until.items() if passed <= now]:
        del _kept_until[key]
    _kept_until[_key(kept, rules)] = until if ripe_at is None else min(until, ripe_at)
    return is_known_kept(kept, rules, now=now)


def _key(kept: MessageRange, rules: RetentionRules) -> tuple[object, ...]:
    return kept.first_id, kept.made_at, *sorted(rules.days.items())
