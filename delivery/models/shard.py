"""A shard: a share of the lanes, served by one sender at a time.

The sender of a shard holds the advisory lock on the connection which commits outcomes. When the
connection ends, so does the lock, and nothing more is committed: the lock fences every commit. The
epoch fences a reconnecting sender. A sender that takes the shard after another sender raises the
epoch. So a sender that finds its own epoch knows: no other sender served the shard meanwhile, and
the running deliveries count. Otherwise they are lost.
"""

from django.db import models

SHARDS = 512


def shard_of(lane_id: int) -> int:
    """Return the shard of a lane; SQL statements use the same formula."""
    return lane_id % SHARDS


class Shard(models.Model):
    """Written by the holder of the lock.

    `owner` is a new UUID for each starting sender.
    """

    id = models.SmallIntegerField(primary_key=True)
    epoch = models.BigIntegerField(default=0)
    owner = models.UUIDField(null=True)

    class Meta:
        # No page shows them.
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                name="shard_exists", condition=models.Q(id__gte=0, id__lt=SHARDS)
            ),
        ]

    def __str__(self) -> str:
        return f"shard {self.pk}"
