"""The states of a delivery, of a lane and of an endpoint, and the outcomes of an attempt.

A delivery:

                      ┌────────── skip, block: the attempt is recorded ─────────┐
                      ▼                                                         │
    publish ──▶   PENDING ──────────────── a sender tries it ───────────────────┤
                   │  ▲  │                                                      ├─▶ DELIVERED
         fetched   │  │  │ ttl, a person                                        ├─▶ REJECTED
                   ▼  │  ├─▶ EXPIRED                                            ├─▶ 3xxNOTSUPPORTED
              IN_FLIGHT  ├─▶ CANCELLED                                          ├─▶ FAILED
            (mailboxes)  ├─▶ REDUNDANT (a sibling, or its join)                └─▶ IN_DOUBT
                         ├─▶ DUPLICATE
                         └─▶ SHADOW (of a SHADOW subscription: never open outside its publication)

Not drawn: IN_FLIGHT → PENDING, DELIVERED, REJECTED, FAILED (`mailbox/README.md`); publication →
IN_DOUBT (SYNC, or possibly a duplicate); IN_DOUBT → DELIVERED, CANCELLED (a person), → DELIVERED,
REJECTED, 3xxNOTSUPPORTED, FAILED (SYNC, when the answer is recorded). Otherwise a delivery stays
IN_DOUBT until a person decides.

All states to the right of and below PENDING and IN_FLIGHT are settled; only a person reopens a
settled delivery. A push delivery stays PENDING while it is being sent: the lane's run records which
deliveries may be under way (see `delivery.models.lane`), so sending costs one commit.
"""

from django.db import models


class Status(models.TextChoices):
    PENDING = "PENDING"
    IN_FLIGHT = "IN_FLIGHT"
    DELIVERED = "DELIVERED"
    REJECTED = "REJECTED"
    UNSUPPORTED = "3xxNOTSUPPORTED", "3xxNOTSUPPORTED"
    REDUNDANT = "REDUNDANT"
    FAILED = "FAILED"
    IN_DOUBT = "IN_DOUBT"
    EXPIRED = "EXPIRED"
    CANCELLED = "CANCELLED"
    DUPLICATE = "DUPLICATE"
    SHADOW = "SHADOW"


OPEN = (Status.PENDING, Status.IN_FLIGHT)
# Settled without a person's decision, and reported as Inturn.Delivery.Failed.
FAILURES = (Status.REJECTED, Status.UNSUPPORTED, Status.FAILED, Status.IN_DOUBT, Status.EXPIRED)


class LaneState(models.TextChoices):
    IDLE = "IDLE"
    SENDING = "SENDING"
    BLOCKED = "BLOCKED"
    SUSPENDED = "SUSPENDED"


class EndpointState(models.TextChoices):
    """The state of an endpoint.

    DOWN: it failed, and waits for the next try. DISABLED, FROZEN: the circuit breaker blocks the
    URL.
    """

    UP = "UP"
    DOWN = "DOWN"
    DISABLED = "DISABLED"
    FROZEN = "FROZEN"


class OutcomeClass(models.TextChoices):
    """The outcome of an attempt: a closed set; `delivery.verdict` has the effect of each."""

    SUCCESS = "SUCCESS", "2xx"
    REDIRECT = "REDIRECT", "3xx"
    CLIENT_ERROR = "CLIENT_ERROR", "4xx"
    RATE_LIMITED = "RATE_LIMITED", "429"
    SERVER_ERROR = "SERVER_ERROR", "5xx"
    UNAVAILABLE = "UNAVAILABLE", "503"
    TIMEOUT = "TIMEOUT", "timed out"
    UNREACHABLE = "UNREACHABLE", "unreachable"
    TLS = "TLS", "TLS failed"
    REFUSED_ADDRESS = "REFUSED_ADDRESS", "address not allowed"
    LOST = "LOST", "sender died after sending"
    UNSENDABLE = "UNSENDABLE", "could not be sent: a fault on our side"
    SCRIPT = "SCRIPT", "script"
    # The outcomes of a message fetched from a mailbox.
    ACKNOWLEDGED = "ACKNOWLEDGED", "acknowledged"
    RELEASED = "RELEASED", "given back"
    UNACKNOWLEDGED = "UNACKNOWLEDGED", "not acknowledged in time"
    DECLINED = "DECLINED", "rejected by the subscriber"


# A fault of ours, or of the script: the endpoint was not called.
NEVER_CALLED = frozenset({OutcomeClass.UNSENDABLE, OutcomeClass.SCRIPT})
