"""The overview: rates, backlog, stopped lanes, held sending and full mailboxes."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import AnonymousUser, User

from delivery.console.event_types import queue_groups
from delivery.console.event_types.queue_groups import DownGroup
from delivery.console.holding import holds
from delivery.console.holding.holds import HeldRow
from delivery.console.lanes import stopped_lanes, strips
from delivery.console.lanes.stopped_lanes import StoppedLane
from delivery.console.lanes.strips import Strip
from delivery.console.shared.rights import may_hold_all, may_toggle
from delivery.console.subscribers import mailboxes
from delivery.console.subscribers.mailboxes import ShownMailbox
from delivery.database.queries import named_row
from delivery.incidents.open_incidents import newest_open
from delivery.models import Incident
from delivery.standing import callback_lane, retry_lane
from delivery.standing.bounded_counts import BACKLOG_LIMIT, Bounded
from delivery.standing.callback_lane import CallbackLane
from delivery.standing.reading import standing_of_subscribers, stopped_subscribers
from delivery.standing.retry_lane import RetryLane
from delivery.standing.vocabulary import Standing
from subscriptions.models import Subscriber, Subscription

RATE_WINDOW = timedelta(minutes=1)
RATE_ROWS = 20_000
# Moving lanes with a strip: those with the oldest deliveries.
MOVING_SHOWN = 12
INCIDENTS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The values of the first page; `held` and `in_mailboxes` are parts of `backlog`.

    `oldest_at` is the oldest delivery to be sent, without mailboxes and held deliveries. `holdings`
    are the subscribers and subscriptions on hold. `stopped` counts the STOPPED subscribers. `lanes`
    are the lanes stopped longest, of CONCURRENT subscribers too, of which only endpoints are DOWN;
    `by_url` are the subscribers that only URLs stop.
    `moving` are the other lanes with the oldest waiting deliveries.
    """

    now: datetime
    accepted_per_second: float
    delivered_per_second: float
    backlog: Bounded
    held: Bounded
    in_mailboxes: Bounded
    oldest_at: datetime | None
    in_doubt: Bounded
    stopped: int
    lanes: list[StoppedLane]
    more_lanes: bool
    by_url: list[tuple[Subscriber, Standing]]
    more_by_url: bool
    moving: list[Strip]
    more_moving: bool
    holdings: list[HeldRow]
    more_holdings: bool
    shadows: int
    is_sending_held: bool
    groups_down: list[DownGroup]
    more_groups: bool
    retry_lane: RetryLane
    callback_lane: CallbackLane
    mailboxes: list[ShownMailbox]
    more_mailboxes: bool
    incidents: list[Incident]
    more_incidents: bool
    has_subscriptions: bool
    may_toggle: bool
    may_unblock: bool
    may_hold_all: bool

    @property
    def suspended(self) -> int:
        return sum(lane.is_suspended for lane in self.lanes)


def read_overview(*, now: datetime, user: User | AnonymousUser) -> Overview:
    """Load everything in a few statements, each of a bounded cost."""
    rates = named_row(
        "overview_rates", {"since": now - RATE_WINDOW, "now": now, "limit": RATE_ROWS}
    )
    backlog = named_row("overview_backlog", {"limit": BACKLOG_LIMIT, "lanes": MOVING_SHOWN + 1})
    moving = backlog["moving_lanes"]
    lanes = stopped_lanes.read_stopped_lanes(limit=stopped_lanes.SHOWN + 1)
    stopped = stopped_subscribers()
    by_url = [id for id, is_by_url in stopped.items() if is_by_url]
    held = holds.read_held(limit=holds.SHOWN + 1)
    groups = queue_groups.groups_down(limit=queue_groups.SHOWN + 1)
    fullest = mailboxes.mailboxes_with_messages(limit=mailboxes.SHOWN + 1, now=now)
    incidents = []
    if user.has_perm("delivery.view_incident"):
        incidents = newest_open(limit=INCIDENTS_SHOWN + 1)
    return Overview(
        now=now,
        accepted_per_second=rates["accepted"],
        delivered_per_second=rates["delivered"],
        backlog=Bounded(backlog["backlog"], BACKLOG_LIMIT),
        held=Bounded(backlog["held"], BACKLOG_LIMIT),
        in_mailboxes=Bounded(backlog["in_mailboxes"], BACKLOG_LIMIT),
        oldest_at=backlog["oldest_at"],
        in_doubt=Bounded(backlog["in_doubt"], BACKLOG_LIMIT),
        stopped=len(stopped),
        lanes=lanes[: stopped_lanes.SHOWN],
        more_lanes=len(lanes) > stopped_lanes.SHOWN,
        by_url=_with_standing(by_url[: stopped_lanes.SHOWN]),
        more_by_url=len(by_url) > stopped_lanes.SHOWN,
        # Without those emptied since.
        moving=[strip for strip in strips.read_strips(moving[:MOVING_SHOWN]) if strip.blocks],
        more_moving=len(moving) > MOVING_SHOWN,
        holdings=held[: holds.SHOWN],
        more_holdings=len(held) > holds.SHOWN,
        shadows=backlog["shadows"],
        is_sending_held=backlog["is_sending_held"],
        groups_down=groups[: queue_groups.SHOWN],
        more_groups=len(groups) > queue_groups.SHOWN,
        retry_lane=retry_lane.read_retry_lane(),
        callback_lane=callback_lane.read_callback_lane(),
        mailboxes=fullest[: mailboxes.SHOWN],
        more_mailboxes=len(fullest) > mailboxes.SHOWN,
        incidents=incidents[:INCIDENTS_SHOWN],
        more_incidents=len(incidents) > INCIDENTS_SHOWN,
        has_subscriptions=Subscription.objects.exists(),
        may_toggle=may_toggle(user),
        may_unblock=user.has_perm("delivery.change_lane"),
        may_hold_all=may_hold_all(user),
    )


def _with_standing(ids: list[int]) -> list[tuple[Subscriber, Standing]]:
    standings, found = standing_of_subscribers(ids), Subscriber.objects.in_bulk(ids)
    return [(found[id], standings[id]) for id in ids if id in found]
