"""The log of sign-ins to the console: who came, who left, who was turned away, and from where."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class SignInKind(models.TextChoices):
    SIGNED_IN = "SIGNED_IN", "the password was right"
    FAILED = "FAILED", "the password or the name was wrong"
    REFUSED = "REFUSED", "too many failures: the password was not even looked at"
    SIGNED_OUT = "SIGNED_OUT", "left by signing out"


class SignIn(models.Model):
    """One sign-in, one failure, or one sign-out; see `subscriptions.sign_in` for what is refused.

    The name is kept of those who exist only: what is typed instead of one is now and then a password. Failures
    are counted by `account`, a digest of whatever name was given, and by `origin`, the address or the network
    that stands for it; `counts` until a success of the same two, or until an administrator lets them try again.
    """

    at = models.DateTimeField(db_default=Now())
    kind = models.CharField(max_length=10, choices=SignInKind)
    username = models.CharField(
        max_length=150, blank=True, default="", help_text="Empty: the name is unknown."
    )
    address = models.GenericIPAddressField(null=True)
    account = models.CharField(max_length=64)
    origin = models.CharField(max_length=43)
    counts = models.BooleanField(default=False)

    class Meta:
        verbose_name = "sign-in"
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["account", "-at"], name="sign_in_of_account", condition=Q(counts=True)),
            models.Index(fields=["origin", "-at"], name="sign_in_from_origin", condition=Q(counts=True)),
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
