"""One lane as its sender keeps it in memory, whatever its kind."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from delivery.senders.parcel import Place
from subscriptions.models import Processing


@dataclass(frozen=True, slots=True)
class Pace:
    """How a subscriber wants its lane to be served; all None in a lane that is nobody's."""

    processing: str | None
    max_in_flight: int | None
    max_queued_to_send: int | None
    refill_level: int | None

    @property
    def is_concurrent(self) -> bool:
        return self.processing == Processing.CONCURRENT


def pace_of(row: Mapping[str, Any]) -> Pace:
    """Make a Pace of a row of `read_lanes.sql` or `changed_lanes.sql`."""
    return Pace(row["processing"], row["max_in_flight"], row["max_queued_to_send"], row["refill_level"])


class Lane:
    """The state of serving one lane; the database has what must outlive the process.

    `news` is set when there is new work, `nudge` when what waits should be looked at again:
    a person asked for it, or a subscription changed.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.id: int = row["id"]
        # It stays so: a lane whose subscriber wants another is given back, and begun anew.
        self.pace = pace_of(row)
        self.news = asyncio.Event()
        self.nudge = asyncio.Event()
        self._is_given_back = False
        self._is_quiescing = False
        self.task: asyncio.Task[None] | None = None

    @property
    def is_pausing(self) -> bool:
        """Whether it waits for a moment that a person may move."""
        return False

    def is_hanging(self, *, since: float) -> bool:
        """Whether an attempt under way began before that moment of the monotonic clock."""
        raise NotImplementedError

    @property
    def places(self) -> Collection[Place]:
        """The places it sends to, where these are not all of one subscriber."""
        return ()

    def cut_off(self) -> None:
        """End the attempts under way: their answers are not waited for any longer."""
        raise NotImplementedError

    def bring_news(self) -> None:
        """There is new work."""
        self.news.set()

    def wake(self) -> None:
        """There is a reason to look again, and to end a pause."""
        self.news.set()
        self.nudge.set()

    @property
    def is_yielding(self) -> bool:
        """Whether no attempt is to begin, and the lane is to end after those under way."""
        return self._is_given_back or self._is_quiescing

    def give_back(self) -> None:
        """Let the lane end after the attempts that are under way."""
        self._is_given_back = True
        self.wake()

    def quiesce(self) -> None:
        """Let the lane end like that, unless it is to stay before it has."""
        self._is_quiescing = True
        self.wake()

    def resume(self) -> None:
        """Go on, if the lane was to leave and has not ended yet."""
        if self._is_quiescing:
            self._is_quiescing = False
            self.wake()
