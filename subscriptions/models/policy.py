"""A policy: the action for each outcome of an attempt."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from subscriptions.models.named_object import Named, Watched
from subscriptions.values.number_lists import ANY_SUCCESS, check_seconds_listed, check_success_codes

# The policy of a subscription without one.
DEFAULT_POLICY = "teamforge"


class Action(models.TextChoices):
    BLOCK = "BLOCK", "block: nothing later is sent until this one succeeds"
    SKIP = "SKIP", "skip: the next is sent, this one again in the next run"
    REJECT = "REJECT", "reject: REJECTED, never sent again"
    UNSUPPORTED = "UNSUPPORTED", "unsupported: 3xxNOTSUPPORTED, never sent again"
    RETRY_LANE = (
        "RETRY_LANE",
        "retry lane: fresh messages flow, this one is tried again on schedule",
    )
    IN_PLACE = (
        "IN_PLACE",
        "retry in place: tried again on schedule, and no later message is sent before it",
    )


class Schedule(models.TextChoices):
    """When a failed delivery is due again; the formulas are in `delivery.verdict`."""

    FIXED = "FIXED", "fixed: the same time after each failure"
    EXPONENTIAL = "EXPONENTIAL", "exponential: (2^n - 1) times as long after the first failure"
    LISTED = "LISTED", "listed: each retry has its own wait after the failure before it"


class UsedUp(models.TextChoices):
    FAIL = "FAIL", "fail: the delivery is FAILED, the next is sent"
    SUSPEND = (
        "SUSPEND",
        "suspend: the lane is SUSPENDED until the probe URL answers 2xx or a person resumes it",
    )


class InDoubt(models.TextChoices):
    RESEND = "RESEND", "resend: same webhook-id, marked as a redelivery"
    HOLD = "HOLD", "hold: IN_DOUBT until a person decides"


def _action(default: Action, help_text: str) -> "models.CharField[str, str]":
    return models.CharField(max_length=12, choices=Action, default=default, help_text=help_text)


class Policy(Named, Watched):
    """A row per policy; built-in policies cannot be changed.

    `blocks_when_overloaded` applies to 503 and 429: both then block the lane, whatever their own
    action is, and Retry-After is honoured up to `retry_after_max_seconds`.

    `retry_…` and `max_attempts` apply to the actions RETRY_LANE and IN_PLACE. `breaks_circuit`
    switches Workfront's URL circuit breaker on, with the thresholds after it; see
    `delivery.models.url_health`.
    """

    success_codes = models.CharField(
        max_length=100,
        default=ANY_SUCCESS,
        validators=[check_success_codes],
        help_text="Answers that count as success: 2xx, or status codes separated by commas, such "
        "as 200,201. Any other 2xx then counts as a 5xx.",
    )
    on_unreachable = _action(
        Action.BLOCK, "The endpoint cannot be reached, TLS fails, or it times out."
    )
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
        "block on 503 and 429",
        default=False,
        help_text="503 and 429 block the lane, and Retry-After is honoured.",
    )
    pause_seconds = models.PositiveIntegerField(
        default=1,
        validators=[MinValueValidator(1)],
        help_text="Seconds. First pause of a blocked lane; it doubles.",
    )
    pause_max_seconds = models.PositiveIntegerField(
        default=60,
        validators=[MaxValueValidator(86_400)],
        help_text="Seconds. Longest pause of a blocked lane.",
    )
    retry_after_max_seconds = models.PositiveIntegerField(
        default=3600,
        validators=[MaxValueValidator(86_400)],
        help_text="Seconds. Longest Retry-After that is honoured.",
    )
    retry_schedule = models.CharField(
        max_length=11,
        choices=Schedule,
        default=Schedule.FIXED,
        help_text="Schedule of retries. EXPONENTIAL is for the retry lane only.",
    )
    retry_seconds = models.FloatField(
        default=10,
        validators=[MinValueValidator(0.1), MaxValueValidator(86_400)],
        help_text="Seconds between tries of a FIXED schedule; the unit of an EXPONENTIAL one.",
    )
    retry_waits = models.CharField(
        max_length=300,
        blank=True,
        default="",
        validators=[check_seconds_listed],
        help_text="Seconds, separated by commas: the waits of a LISTED schedule, such as "
        "5,300,1800. Later retries have the last wait.",
    )
    retry_jitter = models.FloatField(
        "random variation",
        default=0,
        validators=[MinValueValidator(0), MaxValueValidator(0.5)],
        help_text="Share by which a wait varies by chance: 0.1 is up to a tenth shorter or longer.",
    )
    max_attempts = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(100_000)],
        help_text="Attempts of one delivery, the first included. Empty: until it succeeds.",
    )
    when_used_up = models.CharField(
        "when attempts run out",
        max_length=7,
        choices=UsedUp,
        default=UsedUp.FAIL,
        help_text="The action after max_attempts. SUSPEND is for retries in place only.",
    )
    suspends_on_reject = models.BooleanField(
        default=False, help_text="A REJECTED delivery suspends the lane until a person resumes it."
    )
    probe_seconds = models.PositiveIntegerField(
        default=60,
        validators=[MinValueValidator(1), MaxValueValidator(86_400)],
        help_text="Seconds between two calls of the subscription's probe "
        "URL while the lane is suspended.",
    )
    breaks_circuit = models.BooleanField(
        "circuit breaker",
        default=False,
        help_text="A URL that keeps failing is DISABLED and tried once in a while, at last FROZEN "
        "until a person releases it. Due deliveries wait; none are discarded.",
    )
    freezes_when_gone = models.BooleanField(
        default=False,
        help_text="An answer of 410 (Gone) freezes the URL at once: nothing is sent to it until a "
        "person releases it. It needs breaks_circuit.",
    )
    breaker_percent = models.PositiveSmallIntegerField(
        default=70,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text="Percent. DISABLED when more than this share of the attempts failed, "
        "of more than breaker_attempts.",
    )
    breaker_attempts = models.PositiveIntegerField(
        default=100, help_text="Attempts at a URL that breaker_percent does not count yet."
    )
    breaker_failures = models.PositiveIntegerField(
        default=2_000,
        validators=[MinValueValidator(1)],
        help_text="Failures in a row. DISABLED after this many, whatever the share.",
    )
    breaker_probe_seconds = models.PositiveIntegerField(
        default=600,
        validators=[MinValueValidator(1), MaxValueValidator(86_400)],
        help_text="Seconds between two tries of a DISABLED URL.",
    )
    freeze_failures = models.PositiveIntegerField(
        default=2_000,
        validators=[MinValueValidator(1)],
        help_text="Failures in a row. FROZEN after more than this many, "
        "when freeze_hours passed without a success.",
    )
    freeze_hours = models.PositiveIntegerField(
        default=72,
        validators=[MaxValueValidator(87_600)],
        help_text="Hours without a success until freeze_failures counts.",
    )
    freeze_failures_at_once = models.PositiveIntegerField(
        default=50_000,
        validators=[MinValueValidator(1)],
        help_text="Failures in a row. FROZEN after this many, whenever the last success was.",
    )
    is_built_in = models.BooleanField(default=False, editable=False)

    class Meta(Named.Meta):
        verbose_name_plural = "policies"
        indexes = [models.Index(fields=["changed_in"], name="policy_changed")]
        constraints = [
            models.CheckConstraint(
                name="policy_pause_grows",
                condition=models.Q(pause_seconds__lte=models.F("pause_max_seconds")),
                violation_error_message="pause_seconds must not be more than pause_max_seconds.",
            ),
            # `subscriptions.checks.policy` reports these two better, with every contradiction of
            # fields.
            models.CheckConstraint(
                name="policy_suspends_after_attempts",
                condition=~models.Q(when_used_up="SUSPEND") | models.Q(max_attempts__isnull=False),
                violation_error_message="when_used_up SUSPEND needs max_attempts.",
            ),
            models.CheckConstraint(
                name="policy_freezes_after_disabling",
                condition=models.Q(breaks_circuit=False)
                | models.Q(
                    freeze_failures__gte=models.F("breaker_failures"),
                    freeze_failures_at_once__gte=models.F("freeze_failures"),
                ),
                violation_error_message="A URL is disabled before it is frozen.",
            ),
        ]
