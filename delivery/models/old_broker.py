"""Messages taken over from an old broker: the keys already imported, and ids reserved for them."""

from django.db import models
from django.db.models.functions import Now


class ImportedKey(models.Model):
    """An imported message of an old broker: a repeated import leaves it out.

    `key` is a SHA-256 of the old broker's name and key, `digest` a SHA-256 of the line. They are
    kept for ever: about 150 bytes a message.
    """

    key = models.BinaryField(max_length=32, primary_key=True)
    digest = models.BinaryField(max_length=32)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"imported key {bytes(self.key).hex()[:12]}"


class MessageReservation(models.Model):
    """Ids from `first_id` to before `until_id`, kept for imported messages; `next_id` is free.

    A lane sends deliveries in the order of ids. So imported messages with these ids are sent before
    all messages published after the reservation.
    """

    first_id = models.BigIntegerField(primary_key=True)
    until_id = models.BigIntegerField()
    next_id = models.BigIntegerField()
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                condition=models.Q(
                    next_id__gte=models.F("first_id"), next_id__lte=models.F("until_id")
                ),
                name="message_reservation_has_its_ids",
            )
        ]

    def __str__(self) -> str:
        return f"messages {self.first_id} to {self.until_id - 1}"
