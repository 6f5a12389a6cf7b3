"""A shard: a share of the lanes, which one sender serves at a time.

The sender that serves a shard holds its advisory lock on the very connection on which it commits outcomes. When the
connection ends so does the lock, and nothing more is committed: the lock fences every commit. The epoch fences a sender
that connects again. Whoever takes the shard after another sender raises it; so a sender that finds its own epoch
knows that nobody served the shard meanwhile, and what it has under way counts. Otherwise it is lost.
"""

from django.db import models

SHARDS = 512


def shard_of(lane_id: int) -> int:
    """Return the shard of a lane; the SQL statements say the same."""
    return lane_id % SHARDS


class Shard(models.Model):
    """Written by the sender that holds its lock. `owner` is drawn anew by each sender that starts."""

    id = models.SmallIntegerField(primary_key=True)
    epoch = models.BigIntegerField(default=0)
    owner = models.UUIDField(null=True)

    class Meta:
        # Nobody sees them.
        default_permissions = ()
        constraints = [
            models.CheckConstraint(name="shard_exists", condition=models.Q(id__gte=0, id__lt=SHARDS)),
        ]

    def __str__(self) -> str:
        return f"shard {self.pk}"
