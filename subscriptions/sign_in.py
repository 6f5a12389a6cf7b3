"""Signing in to the console: every attempt is recorded, and too many failures delay the next one.

An attempt is recorded as FAILED before the password is checked, and becomes SIGNED_IN if it was
right. So guesses in several web processes at the same moment count each other, and a process killed
in between leaves a failure too many rather than too few. Counting and recording hold locks of the
account and of the origin; the password check takes a while and holds no lock.

Only the failures of the last 15 minutes count, and there is no other state: a throttled visitor may
try again when the oldest of them is old enough. The limit for an account from an origin is small.
The limits for an origin with any accounts, and for an account from any origin, are larger: they are
for distributed guesses, and must not let anybody lock out everybody, or a person, with a few
attempts. Each door counts separate failures: wrong passwords of a queue's client do not lock the
console, though both may come from the same address, such as a proxy's or a whole office's. A
browser with an earlier sign-in to the account has a separate limit, and waits for nobody else's
failures.

A success clears the failures of the same account from the same origin, and no others. An attempt
with an unknown name is treated like any other, so it does not reveal existing names.
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.utils.crypto import salted_hmac

from subscriptions.models import Door, SignIn, SignInKind
from subscriptions.values.client_address import origin_of

WINDOW = timedelta(minutes=15)
MOST_OF_ACCOUNT_FROM_ORIGIN = 5
MOST_FROM_ORIGIN = 30
MOST_OF_ACCOUNT = 100
# From an origin where the account signed in so recently, it is the owner who tries: only the limit
# of the account from this origin applies. Without this exemption guesses from anywhere, or behind
# the same address, could lock the owner out.
KNOWN = timedelta(days=30)
# The length of the column.
MAX_SHOWN = 150
# The upper half of the 64-bit advisory lock keys; `delivery.models.lane` has the other values.
_SIGN_IN_LOCKS = 0x494E0004


class ThrottledError(Exception):
    """Too many failures: no password is checked before `until`."""

    def __init__(self, until: datetime) -> None:
        super().__init__(f"throttled until {until}")
        self.until = until


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Somebody who signs in or out: the name as typed, and the client's address.

    `shown` is recorded as the name if the name is known, but not a user's. `browser` is the number
    of a browser with an earlier sign-in to this account.
    """

    door: Door
    username: str
    address: str | None
    shown: str = ""
    browser: str = ""

    @property
    def account(self) -> str:
        return account_of(self.username)

    @property
    def origin(self) -> str:
        return origin_of(self.address)

    @property
    def locks(self) -> tuple[str, str]:
        return f"{self.door} {self.account}", f"{self.door} {self.origin}"


def account_of(username: str) -> str:
    """Return a digest of the name, which may be a mistyped password."""
    return salted_hmac("inturn.sign-in", username, algorithm="sha256").hexdigest()


def begin_sign_in(visitor: Visitor, *, now: datetime) -> SignIn:
    """Record an attempt before the password is checked.

    Raises ThrottledError after too many failures.
    """
    with transaction.atomic():
        _lock(*visitor.locks)
        until = throttled_until(visitor, now=now)
        if until is None:
            return _write(visitor, SignInKind.FAILED, now=now)
        # A single row is enough to show further attempts; a flood of rows would only be in the way.
        of_origin = SignIn.objects.filter(door=visitor.door, origin=visitor.origin)
        latest = of_origin.order_by("-id").first()
        if latest is None or latest.kind != SignInKind.REFUSED:
            _write(visitor, SignInKind.REFUSED, now=now)
    raise ThrottledError(until)


def complete_sign_in(attempt: SignIn, visitor: Visitor) -> None:
    """Record the right password: earlier failures from the same origin no longer count."""
    with transaction.atomic():
        _lock(*visitor.locks)
        SignIn.objects.filter(pk=attempt.pk).update(kind=SignInKind.SIGNED_IN, counts=False)
        counted = SignIn.objects.filter(
            Q(origin=attempt.origin, browser="") | Q(browser=attempt.browser) & ~Q(browser=""),
            counts=True,
            door=attempt.door,
            account=attempt.account,
        )
        counted.update(counts=False)


def sign_out(visitor: Visitor, *, now: datetime) -> None:
    _write(visitor, SignInKind.SIGNED_OUT, now=now)


def forgive_failures(failure: SignIn) -> int:
    """Reset the failures of an account and of an origin at a door; return how many counted."""
    is_related = Q(account=failure.account) | Q(origin=failure.origin)
    counted = SignIn.objects.filter(is_related, door=failure.door, counts=True)
    return counted.update(counts=False)


def throttled_until(visitor: Visitor, *, now: datetime) -> datetime | None:
    """Return the time from which they may try again, or None if they may now."""
    account, origin = Q(account=visitor.account), Q(origin=visitor.origin)
    at_door = SignIn.objects.filter(door=visitor.door)
    counted = at_door.filter(counts=True, at__gt=now - WINDOW, browser=visitor.browser)
    if visitor.browser:
        return _full_until(counted.filter(account), MOST_OF_ACCOUNT_FROM_ORIGIN)
    signed_in = at_door.filter(account & origin, kind=SignInKind.SIGNED_IN, at__gt=now - KNOWN)
    limits = [(account & origin, MOST_OF_ACCOUNT_FROM_ORIGIN)]
    if not signed_in.exists():
        limits += [(origin, MOST_FROM_ORIGIN), (account, MOST_OF_ACCOUNT)]
    untils = [
        until
        for is_counted, most in limits
        if (until := _full_until(counted.filter(is_counted), most))
    ]
    return max(untils, default=None)


def _full_until(counted: QuerySet[SignIn], most: int) -> datetime | None:
    counted = counted.order_by("-at")
    at = counted.values_list("at", flat=True)[most - 1 : most].first()
    return None if at is None else at + WINDOW


def _write(visitor: Visitor, kind: SignInKind, *, now: datetime) -> SignIn:
    is_user = User.objects.filter(username=visitor.username).exists()
    return SignIn.objects.create(
        at=now,
        kind=kind,
        door=visitor.door,
        browser=visitor.browser,
        username=visitor.username if is_user else visitor.shown[:MAX_SHOWN],
        address=visitor.address,
        account=visitor.account,
        origin=visitor.origin,
        counts=kind == SignInKind.FAILED,
    )


def _lock(*names: str) -> None:
    """Lock these names until the transaction ends, in a fixed order, to avoid deadlocks."""
    for number in _numbers(names):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_SIGN_IN_LOCKS << 32 | number])


def _numbers(names: Iterable[str]) -> list[int]:
    return sorted({zlib.crc32(name.encode()) for name in names})
