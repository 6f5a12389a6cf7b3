"""The lanes of the queue senders: as many as the setting says, and never fewer than there were."""

from delivery.models import Lane, LaneKind


def ensure(count: int) -> None:
    """Make the lanes 0 to count-1 that are missing. Those beyond stay, for what they may still hold."""
    Lane.objects.bulk_create(
        (Lane(kind=LaneKind.QUEUE, number=number) for number in range(count)), ignore_conflicts=True
    )
