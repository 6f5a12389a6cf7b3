"""A range of messages, which has separate partitions."""

from django.db import models


class MessageRange(models.Model):
    """The messages from `first_id` to before `until_id`, and their deliveries and attempts.

    Settled deliveries and logged attempts. Only the functions `delivery_make_range` and
    `delivery_drop_range` write it; they create and drop the partitions.
    """

    first_id = models.BigIntegerField(primary_key=True)
    until_id = models.BigIntegerField()
    made_at = models.DateTimeField()

    class Meta:
        managed = False
        default_permissions = ()

    def __str__(self) -> str:
        return f"messages {self.first_id} to {self.until_id - 1}"
