"""The actions of support that the status of a delivery allows."""

from dataclasses import dataclass

from delivery.lifecycle.transitions import RESUBMITTABLE
from delivery.models import Delivery
from delivery.states import OPEN, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Possible:
    """The actions that a delivery's status allows."""

    resubmit: bool
    edit: bool
    mark_delivered: bool
    cancel: bool

    @property
    def anything(self) -> bool:
        return self.resubmit or self.edit or self.mark_delivered or self.cancel


def possible(row: Delivery) -> Possible:
    # A SYNC delivery was answered while its publisher waited: it has no lane to return to.
    has_place = row.lane_id is not None or row.subscription.has_place_without_lane
    return Possible(
        resubmit=row.status in RESUBMITTABLE and has_place,
        edit=row.status not in OPEN and has_place,
        mark_delivered=row.status == Status.IN_DOUBT,
        cancel=row.status in (*OPEN, Status.IN_DOUBT),
    )
