"""Built-in receivers: URLs of Inturn's own web server, which show their requests."""

import secrets

from django.db import models

from subscriptions.models.named_object import Named

# Bounds of the rows anybody with a URL can make Inturn store: some 50 MB with all receivers.
MOST_RECEIVERS = 20
KEPT_REQUESTS = 50
KEPT_BODY_BYTES = 32 * 1024
KEPT_HEADER_BYTES = 16 * 1024


class ReceiverAnswer(models.TextChoices):
    """The possible answers of a receiver; see `delivery.receivers.answers`."""

    OK = "OK", "204: delivered"
    GONE = "GONE", "410: rejected"
    TOO_MANY = "TOO_MANY", "429, Retry-After: 10"
    ERROR = "ERROR", "500: server error"
    SLOW = "SLOW", "204 after 5 s"
    HANG = "HANG", "no answer for 2 min"
    CLOSE = "CLOSE", "connection closed"


class SignatureCheck(models.TextChoices):
    """Whether a request is signed with a valid secret of a subscription to this receiver."""

    VALID = "VALID", "signature valid"
    INVALID = "INVALID", "signature invalid"
    UNSIGNED = "UNSIGNED", "not signed"
    UNKNOWN = "UNKNOWN", "no subscription sends here"


def new_token() -> str:
    return secrets.token_urlsafe(24)


class BuiltInReceiver(Named):
    """A receiver at `/receiver/<token>`; `received` counts all requests, also those forgotten."""

    token = models.CharField(max_length=32, unique=True, default=new_token, editable=False)
    answer = models.CharField(
        max_length=8,
        choices=ReceiverAnswer,
        default=ReceiverAnswer.OK,
        help_text="To each request.",
    )
    received = models.BigIntegerField(default=0, editable=False)

    class Meta(Named.Meta):
        verbose_name = "built-in receiver"


class ReceivedRequest(models.Model):
    """A recent request of a receiver, shortened; `size` is the whole body's.

    `headers` is a list of pairs; values of credentials are masked before they are stored.
    `message_id` is known of requests with a valid signature only.
    """

    receiver = models.ForeignKey(
        BuiltInReceiver, on_delete=models.CASCADE, related_name="requests", db_index=False
    )
    at = models.DateTimeField()
    method = models.CharField(max_length=20)
    headers = models.JSONField()
    body = models.BinaryField()
    size = models.BigIntegerField()
    signature = models.CharField(max_length=8, choices=SignatureCheck)
    answer = models.CharField(max_length=8, choices=ReceiverAnswer)
    message_id = models.BigIntegerField(null=True)

    class Meta:
        default_permissions = ()
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["receiver", "-id"], name="request_of_receiver"),
            models.Index(fields=["at"], name="request_by_time"),
        ]

    def __str__(self) -> str:
        return f"request {self.pk} to {self.receiver}"
