"""A policy: what each outcome of an attempt leads to."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from subscriptions.models.named import Named

# What a subscription has that names none.
DEFAULT_POLICY = "teamforge"


class Action(models.TextChoices):
    BLOCK = "BLOCK", "block: nothing later is sent until this one succeeds"
    SKIP = "SKIP", "skip: the next is sent, this one again in the next run"
    REJECT = "REJECT", "reject: REJECTED, never sent again"
    UNSUPPORTED = "UNSUPPORTED", "unsupported: 3xxNOTSUPPORTED, never sent again"


class InDoubt(models.TextChoices):
    RESEND = "RESEND", "resend: same webhook-id, marked as a redelivery"
    HOLD = "HOLD", "hold: IN_DOUBT until a person decides"


def _action(default: Action, help_text: str) -> "models.CharField[str, str]":
    return models.CharField(max_length=12, choices=Action, default=default, help_text=help_text)


class Policy(Named):
    """One row a policy; `teamforge` and `strict` come with the installation and stay as they are.

    `blocks_when_overloaded` is the switch of SPEC 4 for 503 and 429: both block the
    lane then, whatever their own action says, and Retry-After is honoured up to
    `retry_after_max_seconds`.
    """

    on_unreachable = _action(Action.BLOCK, "The endpoint cannot be reached, TLS fails, or it times out.")
    on_unavailable = _action(Action.SKIP, "The endpoint answers 503.")
    on_server_error = _action(Action.SKIP, "The endpoint answers 5xx, but not 503.")
    on_rate_limited = _action(Action.REJECT, "The endpoint answers 429.")
    on_client_error = _action(Action.REJECT, "The endpoint answers 4xx, but not 429.")
    on_redirect = _action(Action.UNSUPPORTED, "The endpoint answers 3xx, which is never followed.")
    in_doubt = models.CharField(
        max_length=6,
        choices=InDoubt,
        default=InDoubt.RESEND,
        help_text="A sender died after sending, before the outcome was recorded.",
    )
    blocks_when_overloaded = models.BooleanField(
        default=False, help_text="503 and 429 block the lane, and Retry-After is honoured."
    )
    pause_seconds = models.PositiveIntegerField(
        default=1, validators=[MinValueValidator(1)], help_text="First pause of a blocked lane; it doubles."
    )
    pause_max_seconds = models.PositiveIntegerField(default=60, validators=[MaxValueValidator(86_400)])
    retry_after_max_seconds = models.PositiveIntegerField(
        default=3600,
        validators=[MaxValueValidator(86_400)],
        help_text="Longest Retry-After that is honoured.",
    )
    is_built_in = models.BooleanField(default=False, editable=False)

    class Meta(Named.Meta):
        verbose_name_plural = "policies"
        constraints = [
            models.CheckConstraint(
                name="policy_pause_grows",
                condition=models.Q(pause_seconds__lte=models.F("pause_max_seconds")),
                violation_error_message="pause_seconds must not be more than pause_max_seconds.",
            ),
        ]
