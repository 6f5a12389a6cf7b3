"""The queue lanes: as many as the setting says, and never fewer than there were."""

from delivery.models import Lane, LaneKind


def ensure_queue_lanes(count: int) -> None:
    """Create the missing lanes from 0 to count-1.

    Lanes beyond stay, because they may hold deliveries.
    """
    Lane.objects.bulk_create(
        (Lane(kind=LaneKind.QUEUE, number=number) for number in range(count)), ignore_conflicts=True
    )
