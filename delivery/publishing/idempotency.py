"""Idempotency keys: the same publisher and key within 24 hours gets the first answer again."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from delivery.database import queries
from delivery.models import IdempotencyKey
from subscriptions.models import Publisher


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A draft's key with the content; a draft without a key is always new.

    `answer` is the message's id and number of deliveries if it was published before.
    """

    key: str
    event_type: str
    destination: str
    body: bytes
    is_new: bool = True
    is_conflict: bool = False
    answer: tuple[int, int] = (0, 0)

    @property
    def digest(self) -> bytes:
        words = f"{self.event_type}\0{self.destination}\0".encode()
        return hashlib.sha256(words + self.body).digest()


def claim_keys(publisher: Publisher, claims: Sequence[Claim]) -> list[Claim]:
    """Take the keys, and return for each draft whether it is new, a repetition or a conflict.

    Waits for another transaction using any of the keys. Call it in a transaction: the keys are
    released if it fails. Within a call a repeated key is new once.
    """
    digests: dict[str, bytes] = {}
    for claim in claims:
        if claim.key:
            digests.setdefault(claim.key, claim.digest)
    stored = _store_keys(publisher, digests)
    used = {
        row.key: row
        for row in IdempotencyKey.objects.filter(
            publisher=publisher, key__in=digests.keys() - stored
        )
    }
    return [_judged(claim, used.get(claim.key), digests, stored) for claim in claims]


def store_answers(publisher: Publisher, answers: Mapping[str, tuple[int, int]]) -> None:
    """Store the answers under the keys taken before: message ids and numbers of deliveries."""
    if not answers:
        return
    message_ids, deliveries = zip(*answers.values(), strict=True)
    queries.execute_statement(
        "answer_keys",
        {
            "publisher": publisher.pk,
            "key": list(answers),
            "message_id": list(message_ids),
            "deliveries": list(deliveries),
        },
    )


def _store_keys(publisher: Publisher, digests: Mapping[str, bytes]) -> set[str]:
    if not digests:
        return set()
    parameters = {"publisher": publisher.pk, "key": list(digests), "digest": list(digests.values())}
    return {key for (key,) in queries.rows("take_keys", parameters)}


def _judged(
    claim: Claim, used: IdempotencyKey | None, digests: Mapping[str, bytes], new: set[str]
) -> Claim:
    """Judge a claim; the first of a new key takes it out of `new`."""
    if claim.key in new:
        new.remove(claim.key)
        return claim
    if not claim.key:
        return claim
    if used is None:
        return replace(claim, is_new=False, is_conflict=digests[claim.key] != claim.digest)
    answer = (used.message_id or 0, used.deliveries)
    return replace(
        claim, is_new=False, is_conflict=bytes(used.digest) != claim.digest, answer=answer
    )
