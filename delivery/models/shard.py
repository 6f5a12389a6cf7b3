"""A shard: a share of the lanes, which one sender serves at a time.

The sender that serves a shard holds its advisory lock on the same connection on which it commits
outcomes. When the connection ends, so does the lock, and nothing more is committed: the lock fences
every commit. The epoch fences a sender that connects again. A sender that takes the shard after
another one raises the epoch. So a sender that finds its own epoch can be sure that no other sender
served the shard meanwhile, and its deliveries under way count. Otherwise they are lost.
"""

from django.db import models

SHARDS = 512


def shard_of(lane_id: int) -> int:
    """Return the shard of a lane; SQL statements use the same formula."""
    return lane_id % SHARDS


class Shard(models.Model):
    """Written by the sender that holds its lock.

    `owner` is a new UUID for each sender that starts.
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
