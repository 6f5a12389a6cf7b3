"""Idempotency keys: the same publisher and key within 24 hours gets the first answer again."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.db import connection

from delivery.models import IdempotencyKey
from delivery.sql import statement
from subscriptions.models import Publisher


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A draft's key and what it stands for; without a key it is always new.

    `answer` is the message's id and number of deliveries when it was published before.
    """

    key: str
    event_type: str
    body: bytes
    is_new: bool = True
    is_conflict: bool = False
    answer: tuple[int, int] = (0, 0)

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(self.event_type.encode() + b"\0" + self.body).digest()


def claim_keys(publisher: Publisher, claims: Sequence[Claim]) -> list[Claim]:
    """Take the keys, and say of each draft whether it is new, a repetition or a conflict.

    Waits for another transaction that is using one of the keys. Call it in a
    transaction: the keys are given back if that fails. Within one call a repeated key
    is new once.
    """
    digests: dict[str, bytes] = {}
    for claim in claims:
        if claim.key:
            digests.setdefault(claim.key, claim.digest)
    taken = _take(publisher, digests)
    used = {
        row.key: row
        for row in IdempotencyKey.objects.filter(publisher=publisher, key__in=digests.keys() - taken)
    }
    return [_judged(claim, claims[:index], used) for index, claim in enumerate(claims)]


def store_answers(publisher: Publisher, answers: Mapping[str, tuple[int, int]]) -> None:
    """Keep what was answered under the keys taken before."""
    for key, (message_id, deliveries) in answers.items():
        IdempotencyKey.objects.filter(publisher=publisher, key=key).update(
            message_id=message_id, deliveries=deliveries
        )


def _take(publisher: Publisher, digests: Mapping[str, bytes]) -> set[str]:
    # In the order of the keys, so that two batches never wait for each other.
    taken: set[str] = set()
    with connection.cursor() as cursor:
        for key in sorted(digests):
            cursor.execute(
                statement("take_key"), {"publisher": publisher.pk, "key": key, "digest": digests[key]}
            )
            taken |= {row[0] for row in cursor.fetchall()}
    return taken


def _judged(claim: Claim, earlier: Sequence[Claim], used: Mapping[str, IdempotencyKey]) -> Claim:
    if not claim.key:
        return claim
    row = used.get(claim.key)
    if row is not None:
        is_conflict = bytes(row.digest) != claim.digest
        answer = (row.message_id or 0, row.deliveries)
        return replace(claim, is_new=False, is_conflict=is_conflict, answer=answer)
    first = next((other for other in earlier if other.key == claim.key), None)
    if first is None:
        return claim
    return replace(claim, is_new=False, is_conflict=first.digest != claim.digest)
