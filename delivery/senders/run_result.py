"""The runs of an ordered lane: their limits and their results; `lanes/runs.py` has the pauses.

A run has up to `max_queued_to_send` deliveries and no pause inside: an endpoint that answers gets
the whole run. While nothing succeeds the run is read in pieces. The first piece after a failure is
short, because the endpoint may still be unreachable; memory and scripts make other pieces short.

    read a piece ─▶ send it ─┬─▶ all failed, and the run may have more ─▶ read its next piece …
                             ├─▶ all failed, and that was the whole run ─▶ pause, then the next run
                             └─▶ some were settled ─▶ the next run at once
"""

from dataclasses import dataclass

from delivery.verdict import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceLimits:
    """The limits of reading one piece: rows, and how many of them are fresh, or skipped.

    `began_at`, in seconds since boot, leaves out skipped deliveries that were tried since then;
    `resting` leaves out those of the subscriptions whose skipped deliveries pause.
    """

    rows: int
    fresh_rows: int
    skipped_rows: int
    is_fresh_first: bool = False
    began_at: float | None = None
    resting: frozenset[int] = frozenset()


class RunResult:
    """One run of up to `most` deliveries. `left` counts those neither tried nor set aside yet.

    A delivery is *fresh* if the row does not say skipped: usually it was never tried, but it may
    have blocked the lane, have been in doubt or been resubmitted. `is_fresh_first`: fresh
    deliveries come before skipped deliveries; otherwise all are in the order of ids. `has_skipped`:
    there may be skipped deliveries to read, of subscriptions that are not `resting`. `is_early`:
    not a whole run, but one delivery in the pause after a run. `is_all`: when they were read the
    lane had no others that could be sent.
    """

    __slots__ = (
        "began_at",
        "failed",
        "failed_subscription_id",
        "failed_subscriptions",
        "fresh",
        "fresh_failed",
        "generation",
        "has_skipped",
        "is_all",
        "is_cut",
        "is_early",
        "is_fresh_first",
        "left",
        "most",
        "reason",
        "resting",
        "rules",
        "settled",
        "skipped",
        "skipped_failed",
        "skipped_settled",
    )

    def __init__(
        self,
        *,
        most: int,
        generation: int = 0,
        has_skipped: bool = True,
        is_fresh_first: bool = False,
        is_early: bool = False,
        resting: frozenset[int] = frozenset(),
    ) -> None:
        self.most = most
        self.resting = resting
        self.is_early = is_early
        # Of the lane's stock: a run that is forgotten does not go on.
        self.generation = generation
        self.has_skipped = has_skipped
        self.is_fresh_first = is_fresh_first
        self.began_at: float | None = None
        self.fresh = self.skipped = self.left = self.settled = self.fresh_failed = 0
        # The subscriptions of which something failed; of skipped deliveries also their rules.
        self.failed_subscriptions: set[int] = set()
        self.skipped_failed: dict[int, Rules] = {}
        # The subscriptions of which a skipped delivery was settled.
        self.skipped_settled: set[int] = set()
        self.is_all = False
        # Whether a limit of the last piece may have left out deliveries that belong to the run.
        self.is_cut = False
        # The first delivery that failed, and the reason of the last failure.
        self.failed: int | None = None
        self.failed_subscription_id = 0
        self.reason = ""
        self.rules: Rules | None = None

    def limits(self, rows: int) -> PieceLimits:
        """Return the limits of the next piece, if it may have so many rows.

        At most half of a run is skipped deliveries. Fresh deliveries that come first leave this
        half free while there may be skipped deliveries: otherwise they could fill every run.
        """
        places = self.most - self.fresh - self.skipped
        rows = min(rows, places)
        skipped = self._skipped_left
        kept = min(skipped, self.most // 2) if self.is_fresh_first else 0
        return PieceLimits(
            rows=rows,
            fresh_rows=min(places - kept, rows),
            skipped_rows=min(skipped, rows if self.is_fresh_first else max(rows // 2, 1)),
            is_fresh_first=self.is_fresh_first,
            began_at=self.began_at,
            resting=self.resting,
        )

    def add(self, limits: PieceLimits, *, fresh: int, skipped: int, is_cut: bool) -> None:
        """Add a piece that was read with those limits. `is_cut`: another limit left some out."""
        is_cut |= fresh + skipped >= limits.rows
        has_all_skipped = not is_cut and skipped < limits.skipped_rows
        is_cut |= fresh >= limits.fresh_rows
        self.is_all = has_all_skipped and not (is_cut or self.fresh or self.skipped)
        self.has_skipped &= not has_all_skipped
        self.fresh += fresh
        self.skipped += skipped
        self.left += fresh + skipped
        self.is_cut = is_cut or self._skipped_left > 0

    @property
    def _skipped_left(self) -> int:
        """How many skipped deliveries the run may still have."""
        return max(self.most // 2, 1) - self.skipped if self.has_skipped else 0

    @property
    def is_fruitless(self) -> bool:
        """True if some deliveries were tried, and none was settled or moved to the retry lane."""
        return self.rules is not None and not self.settled

    @property
    def goes_on(self) -> bool:
        """True if nothing has succeeded yet, and there may be more to read for the run."""
        return not self.settled and self.is_cut and self.fresh + self.skipped < self.most

    @property
    def leaves_nothing(self) -> bool:
        """True if all deliveries of the lane were read for this run, and have left the lane.

        Later deliveries have notifications of their own, or are found by the poll.
        """
        return self.is_all and self.settled == self.fresh + self.skipped

    def set_aside(self) -> None:
        """Count a delivery that is not sent: the subscription holds it back, or it is overdue."""
        self.left -= 1

    def count_settled(self, subscription_id: int, *, was_skipped: bool) -> None:
        """Count a delivery that was settled or moved to the retry lane."""
        self.left -= 1
        self.settled += 1
        if was_skipped:
            self.skipped_settled.add(subscription_id)

    def count_failed(
        self,
        delivery_id: int,
        *,
        subscription_id: int,
        reason: str,
        rules: Rules,
        was_skipped: bool = False,
    ) -> None:
        """Count a delivery that was tried and is set aside."""
        self.left -= 1
        self.failed_subscriptions.add(subscription_id)
        if was_skipped:
            self.skipped_failed[subscription_id] = rules
        else:
            self.fresh_failed += 1
        if self.failed is None:
            self.failed, self.failed_subscription_id = delivery_id, subscription_id
        self.reason = reason
        self.rules = rules
