"""The log of the console: sign-ins, sign-outs and refused attempts, with their addresses."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class SignInKind(models.TextChoices):
    SIGNED_IN = "SIGNED_IN", "the password was right"
    FAILED = "FAILED", "the password or the name was wrong"
    REFUSED = "REFUSED", "too many failures: the password was not even looked at"
    SIGNED_OUT = "SIGNED_OUT", "left by signing out"


class Door(models.TextChoices):
    """Where a password is asked for; failures at a door do not count at another."""

    CONSOLE = "CONSOLE", "the console"
    TEAMFORGE = "TEAMFORGE", "the login of TeamForge's clients"
    EVENT_QUEUE = "EVENT_QUEUE", "the queues of Event Queue's clients"


class SignIn(models.Model):
    """A sign-in, failure or sign-out; `subscriptions.sign_in` has the rules of refusal.

    Only names of existing users are stored, because people sometimes type a password as the name.
    Failures are counted by `account`, a digest of the name as typed, and by `origin`, the address
    or the network it is in; `counts` is True until the same two succeed, or until an administrator
    resets them.
    """

    at = models.DateTimeField(db_default=Now())
    kind = models.CharField(max_length=10, choices=SignInKind)
    door = models.CharField(
        max_length=11, choices=Door, default=Door.CONSOLE, db_default=Door.CONSOLE
    )
    username = models.CharField(
        max_length=150, blank=True, default="", help_text="Empty: the name is unknown."
    )
    address = models.GenericIPAddressField(null=True)
    account = models.CharField(max_length=64)
    origin = models.CharField(max_length=43)
    browser = models.CharField(
        max_length=32,
        blank=True,
        default="",
        db_default="",
        help_text="The number of a browser that signed in to the account before.",
    )
    counts = models.BooleanField(default=False)

    class Meta:
        verbose_name = "sign-in"
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["account", "-at"], name="sign_in_of_account", condition=Q(counts=True)
            ),
            models.Index(
                fields=["origin", "-at"], name="sign_in_from_origin", condition=Q(counts=True)
            ),
            models.Index(fields=["origin", "-id"], name="sign_in_last_of_origin"),
            models.Index(fields=["username", "-id"], name="sign_in_of_user"),
            models.Index(fields=["at"], name="sign_in_by_time"),
        ]
        constraints = [
            models.CheckConstraint(
                name="sign_in_only_failures_count", condition=Q(counts=False) | Q(kind="FAILED")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.username or 'somebody'} {self.kind}"
