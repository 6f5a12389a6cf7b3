"""Successes at URLs whose health is kept: counted in memory, written at intervals.

All subscriptions and all senders share the row of a URL. Written with each success it would be
locked by group commits in turn, and every sender would wait for every other's disk. A
success at a healthy URL changes nothing urgent: it is written within about a second, or together
with the next failure there, which must not be judged without it. The successes that a sender had
not written when it died are lost: the URL then has a few successes less among its attempts, and the
last success may be a second older. A success at a disabled URL is written at once, because it
enables the URL.
"""

from collections import Counter
from dataclasses import replace

import orjson

from delivery.senders.entries import Settlement
from delivery.senders.parcel import Endpoint
from delivery.senders.read_connection import ReadConnection
from delivery.states import OutcomeClass


class Successes:
    """The unwritten successes of a sender, by subscription."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def count_success(self, settlement: Settlement, endpoint: Endpoint) -> Settlement:
        """Return the settlement to commit.

        A success is counted here instead; another outcome carries the successes counted before.
        """
        if settlement.counted_subscription_id is None:
            return settlement
        if settlement.outcome.outcome is OutcomeClass.SUCCESS and not endpoint.is_disabled:
            self._counts[settlement.counted_subscription_id] += 1
            return replace(settlement, counted_subscription_id=None)
        return replace(
            settlement, successes_before=self._counts.pop(settlement.counted_subscription_id, 0)
        )

    async def write(self, read_connection: ReadConnection) -> None:
        """Write the successes; those at a URL whose row is locked now stay for the next call."""
        if not self._counts:
            return
        counts, self._counts = self._counts, Counter()
        rows = [{"subscription_id": id, "attempts": count} for id, count in counts.items()]
        written = await read_connection.fetch(
            "count_successes", {"rows": orjson.dumps(rows).decode()}
        )
        for row in written:
            del counts[row["subscription_id"]]
        self._counts.update(counts)
