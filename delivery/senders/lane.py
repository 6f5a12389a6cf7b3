"""One lane as its sender keeps it in memory, whatever its kind."""

import asyncio

from delivery.senders.parcel import Endpoint

# An attempt that takes longer is slow: its lane does not keep the others from ending the stint.
SLOW_SECONDS = 3.0


class Lane:
    """The state of serving one lane; the database has what must outlive the process.

    `news` is set when there is new work, `nudge` when what waits should be looked at again:
    a person asked for it, or a subscription changed.
    """

    def __init__(self, lane_id: int) -> None:
        self.id = lane_id
        self.news = asyncio.Event()
        self.nudge = asyncio.Event()
        self.is_yielding = False
        self.task: asyncio.Task[None] | None = None

    @property
    def is_pausing(self) -> bool:
        """Whether it waits for a moment that a person may move."""
        return False

    @property
    def is_failing(self) -> bool:
        """Whether nothing came of the last tries."""
        return False

    def is_hanging(self, *, since: float) -> bool:
        """Whether an attempt under way began before that moment of the monotonic clock."""
        raise NotImplementedError

    def concerns(self, endpoint: Endpoint) -> bool:
        """Whether a change of the endpoint is a reason to look again."""
        raise NotImplementedError

    def cut_off(self) -> None:
        """End the attempts under way: their answers are not waited for any longer."""
        raise NotImplementedError

    def wake(self) -> None:
        """There is a reason to look again, and to end a pause."""
        self.news.set()
        self.nudge.set()

    def give_back(self) -> None:
        """Let another sender have the lane, after the attempts that are under way."""
        self.is_yielding = True
        self.wake()

    def park(self) -> None:
        """Give it back because an endpoint is slow."""
        self.give_back()
