"""Storing plain posts together: each whole or not at all, by one statement for all of them."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import islice

from django.db import transaction

from delivery.ingest.plain import PlainPost
from delivery.ingest.posts import Post
from delivery.publishing.stored_messages import Accepted, Configuration, store_messages


def store_together(
    plain: Sequence[PlainPost], *, as_of: Configuration, is_alone: bool = False
) -> list[tuple[Post, bytes | None]] | None:
    """Return each post with its answer, None for one whose key was used: nothing of it is stored.

    Return None as a whole if the configuration has changed since `as_of`: nothing was stored.

    The statement leaves out single messages whose key was used. Half a batch must not stay: if a
    batch has keys, the statement runs in a transaction, which is rolled back, and the rest is
    stored without that batch.
    """
    may_be_half = any(one.is_batch_with_keys for one in plain)
    with transaction.atomic() if may_be_half else nullcontext():
        owed = [owed for one in plain for owed in one.owed]
        stored = store_messages(owed, as_of=as_of, is_alone=is_alone)
        if stored is None:
            return None
        answers = list(_divided(plain, stored[0]))
        half = [one for one, accepted in answers if None in accepted and any(accepted)]
        if half:
            transaction.set_rollback(True)
    if half:
        others = store_together([one for one in plain if one not in half], as_of=as_of)
        return None if others is None else [*others, *((one.post, None) for one in half)]
    stored[1].notify()
    return [(one.post, _answer(one, accepted)) for one, accepted in answers]


def _divided(
    plain: Sequence[PlainPost], accepted: Sequence[Accepted | None]
) -> Iterator[tuple[PlainPost, list[Accepted | None]]]:
    left = iter(accepted)
    for one in plain:
        yield one, list(islice(left, len(one.owed)))


def _answer(one: PlainPost, accepted: Sequence[Accepted | None]) -> bytes | None:
    stored = [each for each in accepted if each is not None]
    return one.answer(stored) if len(stored) == len(accepted) else None
