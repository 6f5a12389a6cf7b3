"""Storing plain posts together: each whole or not at all, by a single statement for all of them."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import islice

from django.db import transaction

from delivery.incoming.short_way.plain import PlainPost
from delivery.incoming.short_way.posts import Post
from delivery.publishing.plain import WhyNotPlain
from delivery.publishing.stored_messages import Accepted, Configuration, store_messages


def store_together(
    plain: Sequence[PlainPost], *, as_of: Configuration, is_alone: bool = False
) -> list[tuple[Post, bytes | WhyNotPlain]] | None:
    """Return each post with the answer, or KEY_IS_USED: then nothing of it is stored.

    Return None as a whole if the configuration has changed since `as_of`: nothing was stored.

    The statement leaves out single messages whose key was used. Half a batch must not stay: if a
    batch has keys, the statement runs in a transaction, which is rolled back, and the rest is
    stored without this batch.
    """
    may_be_half = any(plain_post.is_batch_with_keys for plain_post in plain)
    with transaction.atomic() if may_be_half else nullcontext():
        owed = [owed for plain_post in plain for owed in plain_post.owed]
        stored = store_messages(owed, as_of=as_of, is_alone=is_alone)
        if stored is None:
            return None
        answers = list(_divided(plain, stored[0]))
        half = [
            plain_post for plain_post, accepted in answers if None in accepted and any(accepted)
        ]
        if half:
            transaction.set_rollback(True)
    if half:
        others = store_together(
            [plain_post for plain_post in plain if plain_post not in half], as_of=as_of
        )
        used = [(plain_post.post, WhyNotPlain.KEY_IS_USED) for plain_post in half]
        return None if others is None else [*others, *used]
    stored[1].notify()
    return [(plain_post.post, _answer(plain_post, accepted)) for plain_post, accepted in answers]


def _divided(
    plain: Sequence[PlainPost], accepted: Sequence[Accepted | None]
) -> Iterator[tuple[PlainPost, list[Accepted | None]]]:
    left = iter(accepted)
    for plain_post in plain:
        yield plain_post, list(islice(left, len(plain_post.owed)))


def _answer(plain_post: PlainPost, accepted: Sequence[Accepted | None]) -> bytes | WhyNotPlain:
    stored = [each for each in accepted if each is not None]
    is_whole = len(stored) == len(accepted)
    return plain_post.answer(stored) if is_whole else WhyNotPlain.KEY_IS_USED
