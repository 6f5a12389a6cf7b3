"""Signing in to the console: every try is recorded, and who failed too often has to wait.

A try is written down as FAILED before the password is looked at, and becomes SIGNED_IN when it was right. So guesses
that several web processes take at the same moment count each other, and a process that dies in between leaves a
failure too many rather than one too few. Counting and writing hold locks of the account and of where it comes from;
the password, which takes its time, is looked at without them.

What counts are the failures of the last quarter of an hour, so there is no other state: whoever is held back may try
again when the first of them is that old. The limit of one account from one place is small. That of one place, for
whatever accounts, and that of one account, from wherever, are larger: they are for guesses that are spread out, and
must not let a stranger lock out everybody, or somebody in particular, with a few.

A success forgives the failures of the same account from the same place, and no others. That of an unknown name is like any other, so that nobody learns from it which names there are.
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Q
from django.utils.crypto import salted_hmac

from subscriptions.models import SignIn, SignInKind
from subscriptions.values.client_address import origin_of

WINDOW = timedelta(minutes=15)
MOST_OF_ACCOUNT_FROM_ORIGIN = 5
MOST_FROM_ORIGIN = 30
MOST_OF_ACCOUNT = 100
# Else strangers everywhere could keep somebody out: where an account signed in lately it is its owner who tries.
KNOWN = timedelta(days=30)
# As many characters as a row has for it.
MAX_SHOWN = 150
# The upper half of the 64-bit keys of advisory locks; `delivery.models.lane` has the others.
_SIGN_IN_LOCKS = 0x494E0004


class HeldBackError(Exception):
    """Too many failures: nothing is looked at before `until`."""

    def __init__(self, until: datetime) -> None:
        super().__init__(f"held back until {until}")
        self.until = until


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Somebody at the door: the name that was given, and the address it came from.

    Who is no user of the console is written down as `shown`, where the name is known to be one.
    """

    username: str
    address: str | None
    shown: str = ""

    @property
    def account(self) -> str:
        """A digest of the name: what was typed may be a password."""
        return salted_hmac("inturn.sign-in", self.username, algorithm="sha256").hexdigest()

    @property
    def origin(self) -> str:
        return origin_of(self.address)


def begin(visitor: Visitor, *, now: datetime) -> SignIn:
    """Write down a try, before the password is looked at; raises HeldBackError when it is not to be."""
    with transaction.atomic():
        _lock(visitor.account, visitor.origin)
        until = held_back_until(visitor, now=now)
        if until is None:
            return _write(visitor, SignInKind.FAILED, now=now)
        # One row tells that they go on trying: a flood of them would only be in the way.
        latest = SignIn.objects.filter(origin=visitor.origin).order_by("-id").first()
        if latest is None or latest.kind != SignInKind.REFUSED:
            _write(visitor, SignInKind.REFUSED, now=now)
    raise HeldBackError(until)


def succeed(attempt: SignIn) -> None:
    """The password was right: what failed before from the same place counts no longer."""
    with transaction.atomic():
        _lock(attempt.account, attempt.origin)
        SignIn.objects.filter(pk=attempt.pk).update(kind=SignInKind.SIGNED_IN, counts=False)
        counted = SignIn.objects.filter(counts=True, account=attempt.account, origin=attempt.origin)
        counted.update(counts=False)


def sign_out(visitor: Visitor, *, now: datetime) -> None:
    _write(visitor, SignInKind.SIGNED_OUT, now=now)


def forgive(failure: SignIn) -> int:
    """Let the account, and all from that place, try again at once; return how many failures counted."""
    same = Q(account=failure.account) | Q(origin=failure.origin)
    return SignIn.objects.filter(same, counts=True).update(counts=False)


def held_back_until(visitor: Visitor, *, now: datetime) -> datetime | None:
    """Return from when on they may try again, or None when they may now."""
    account, origin = Q(account=visitor.account), Q(origin=visitor.origin)
    limits = [(account & origin, MOST_OF_ACCOUNT_FROM_ORIGIN), (origin, MOST_FROM_ORIGIN)]
    signed_in = SignIn.objects.filter(account & origin, kind=SignInKind.SIGNED_IN, at__gt=now - KNOWN)
    if not signed_in.exists():
        limits.append((account, MOST_OF_ACCOUNT))
    untils = [until for same, most in limits if (until := _full_until(same, most, now=now))]
    return max(untils, default=None)


def _full_until(same: Q, most: int, *, now: datetime) -> datetime | None:
    counted = SignIn.objects.filter(same, counts=True, at__gt=now - WINDOW).order_by("-at")
    at = counted.values_list("at", flat=True)[most - 1 : most].first()
    return None if at is None else at + WINDOW


def _write(visitor: Visitor, kind: SignInKind, *, now: datetime) -> SignIn:
    is_user = User.objects.filter(username=visitor.username).exists()
    return SignIn.objects.create(
        at=now,
        kind=kind,
        username=visitor.username if is_user else visitor.shown[:MAX_SHOWN],
        address=visitor.address,
        account=visitor.account,
        origin=visitor.origin,
        counts=kind == SignInKind.FAILED,
    )


def _lock(*names: str) -> None:
    """Hold the locks of these names until the transaction ends; in one order, so that nobody waits for each other."""
    for number in _numbers(names):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_SIGN_IN_LOCKS << 32 | number])


def _numbers(names: Iterable[str]) -> list[int]:
    return sorted({zlib.crc32(name.encode()) for name in names})
