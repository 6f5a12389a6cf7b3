"""The health of a URL, for the circuit breaker: a row a URL, shared by the subscriptions.

    ENABLED ── too many failures ──▶ DISABLED ── still failing after days ──▶ FROZEN
       ▲                               │  ▲                                     │
       └────── a probe succeeds ───────┘  └ a probe fails: the next in a while  │
       └──────────────────────── a person releases it ─────────────────────────┘

    ENABLED, DISABLED ── an answer of 410, under a policy with `freezes_when_gone` ──▶ FROZEN

While a URL is DISABLED only a single attempt is made every so often, while it is FROZEN none at
all; due deliveries wait, and none is discarded. Only subscriptions whose policy has
`breaks_circuit` are counted.

A 410 freezes the URL in the committing transaction of the attempt's outcome, so the delivery and
the URL never disagree:

- killed before this commit: the delivery is in doubt as always, is sent again, and gets 410 again;
- another attempt is under way when the URL freezes: the outcome counts, and a success does not
  release the URL, because a person decides;
- another sender has read deliveries of the URL: it sees the row's change within a second, as of any
  FROZEN URL, and until then an attempt may begin and get 410;
- a 410 commits after a person released the URL: the attempt was under way at the release, and
  freezes the URL again.
"""

from django.db import models
from django.db.models.functions import Now

from subscriptions.models.named_object import Watched


class UrlState(models.TextChoices):
    ENABLED = "ENABLED"
    DISABLED = "DISABLED"
    FROZEN = "FROZEN"


class UrlHealth(Watched):
    """The health of a URL.

    The statements `count_at_urls.sql`, `judge_urls.sql` and `claim_probe.sql` write it, and
    `delivery.support.release_url`. `attempts` and `failures` count since it was last enabled,
    `failures_in_row` since the last success. `changed_in` is the transaction of the last change of
    the state.
    """

    url = models.CharField(max_length=2000, primary_key=True)
    state = models.CharField(max_length=8, choices=UrlState, default=UrlState.ENABLED)
    since = models.DateTimeField(db_default=Now())
    attempts = models.BigIntegerField(default=0)
    failures = models.BigIntegerField(default=0)
    failures_in_row = models.BigIntegerField(default=0)
    # Before the first success: the time of the first attempt.
    last_success_at = models.DateTimeField(db_default=Now())
    first_success_at = models.DateTimeField(null=True)
    next_probe_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "URL"
        verbose_name_plural = "URLs"
        ordering = ["url"]
        constraints = [
            models.CheckConstraint(
                name="url_probed_while_disabled",
                condition=models.Q(state="DISABLED") ^ models.Q(next_probe_at=None),
            ),
        ]
        indexes = [
            models.Index(
                fields=["since"], name="url_health_broken", condition=~models.Q(state="ENABLED")
            ),
            models.Index(fields=["changed_in"], name="url_health_changed"),
        ]

    def __str__(self) -> str:
        return self.url
