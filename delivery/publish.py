"""Publishing: one transaction that stores messages with every delivery they owe.

What a crash leaves: nothing before the commit, everything after it. A publisher
that did not get its answer repeats with the same idempotency key and gets the first answer. Two that
use one key at the same moment meet at its unique row: the second waits there until the first
has committed, and then finds its answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat

import orjson
from django.conf import settings
from django.db import IntegrityError, transaction

from delivery import callbacks, dedup, wake
from delivery.callback_urls import CALLBACK_URL, CallbackRefusedError, Wanted, wanted
from delivery.database import first_row
from delivery.idempotency import Claim, claim_keys, store_answers
from delivery.schema import first_violation
from subscriptions.filters import document
from subscriptions.matching import Candidate, candidates, groups, qualifying
from subscriptions.models import EventType, Kind, Publisher


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a publisher wants published; header names are lower-case and hyphenated.

    `callback` follows from the headers, and is left to `publish`.
    """

    event_type: EventType
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    content_type: str = ""
    idempotency_key: str | None = None
    callback: Wanted | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message that is on disk with so many deliveries."""

    message_id: int
    deliveries: int


class PublishRefusedError(Exception):
    """A draft that cannot be published; nothing is stored. `index` counts the drafts from 0."""

    def __init__(
        self, detail: str, *, index: int, status: int, path: str | None = None, code: str = ""
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.index = index
        self.status = status
        self.path = path
        self.code = code


def publish(publisher: Publisher, drafts: Sequence[Draft]) -> list[Accepted]:
    """Store the drafts in the order given, all or none, and return the answer to each.

    When it returns, they are on disk with their deliveries and the senders have been told. A draft
    with an idempotency key that was used within 24 hours gets the first answer again.
    Raises PublishRefusedError for the first draft that is not acceptable, or whose event type is deleted
    meanwhile.
    """
    for index, draft in enumerate(drafts):
        check(draft, index=index)
    drafts = [_with_callback(draft, index=index) for index, draft in enumerate(drafts)]
    try:
        accepted, lane_ids = _publish(publisher, drafts)
    except IntegrityError:
        # A subscription was deleted between matching and storing: match again.
        accepted, lane_ids = _publish_again(publisher, drafts)
    wake.lanes(lane_ids)
    return accepted


def publish_own(drafts: Sequence[Draft]) -> list[Accepted]:
    """Store messages of Inturn's own, in the transaction of the caller; the senders are told after its commit."""
    accepted, lane_ids = _store_whole(None, list(zip(drafts, _match(drafts), strict=True)))
    transaction.on_commit(lambda: wake.lanes(lane_ids))
    return accepted


def check(draft: Draft, *, index: int = 0) -> None:
    """Raise PublishRefusedError unless the body is what its content type and the event type's schema say."""
    if not _is_json(draft.content_type or draft.event_type.content_type):
        return
    try:
        value = orjson.loads(draft.body)
    except orjson.JSONDecodeError as error:
        detail = f"The body is not JSON: {error.msg}, line {error.lineno}, column {error.colno}."
        raise PublishRefusedError(detail, index=index, status=400) from error
    try:
        violation = first_violation(draft.event_type, value)
    except RecursionError:
        detail = "The body is nested too deep to be checked against the event type's schema."
        raise PublishRefusedError(detail, index=index, status=400) from None
    if violation is not None:
        detail = f"The body does not satisfy the event type's schema at {violation.path}: {violation.message}"
        raise PublishRefusedError(detail, index=index, status=422, path=violation.path)


def _with_callback(draft: Draft, *, index: int) -> Draft:
    """Return a draft that knows where answers to it are wanted: of a TOPIC, `CallbackURL` is a header as any other."""
    if draft.event_type.kind != Kind.QUEUE or CALLBACK_URL not in draft.headers:
        return draft
    try:
        return replace(draft, callback=wanted(draft.headers))
    except CallbackRefusedError as refused:
        raise PublishRefusedError(refused.detail, index=index, status=400, code="callback-refused") from None


def _publish(publisher: Publisher, drafts: Sequence[Draft]) -> tuple[list[Accepted], list[int]]:
    matched = _match(drafts)
    if not _is_more_than_stored(drafts, matched):
        # One statement is a transaction of its own: no BEGIN, no COMMIT.
        return _store(publisher, list(zip(drafts, matched, strict=True)))
    with transaction.atomic():
        return _publish_once(publisher, drafts, matched)


def _is_more_than_stored(drafts: Sequence[Draft], matched: Sequence[list[Candidate]]) -> bool:
    """Whether a draft has a key or a callback, or may be a duplicate: rare, and more than one statement."""
    if any(draft.idempotency_key or draft.callback for draft in drafts):
        return True
    return any(match.deduplicates for matches in matched for match in matches)


def _publish_again(publisher: Publisher, drafts: Sequence[Draft]) -> tuple[list[Accepted], list[int]]:
    try:
        return _publish(publisher, drafts)
    except IntegrityError:
        refused = deleted(publisher, drafts)
        if refused is None:
            raise
        raise refused from None


def deleted(publisher: Publisher, drafts: Sequence[Draft]) -> PublishRefusedError | None:
    """Return the refusal of the first draft that refers to what is not there any more."""
    if not Publisher.objects.filter(pk=publisher.pk).exists():
        return PublishRefusedError(f"The publisher {publisher} was deleted meanwhile.", index=0, status=404)
    event_types = {draft.event_type.pk for draft in drafts}
    known = set(EventType.objects.filter(pk__in=event_types).values_list("pk", flat=True))
    for index, draft in enumerate(drafts):
        if draft.event_type.pk not in known:
            detail = f"The event type {draft.event_type} was deleted meanwhile."
            return PublishRefusedError(detail, index=index, status=404)
    return None


def _publish_once(
    publisher: Publisher, drafts: Sequence[Draft], matched: Sequence[list[Candidate]]
) -> tuple[list[Accepted], list[int]]:
    claims = claim_keys(publisher, [_claim(draft) for draft in drafts])
    for index, claim in enumerate(claims):
        if claim.is_conflict:
            detail = "This Idempotency-Key was used for another message within 24 hours; use a new key."
            raise PublishRefusedError(detail, index=index, status=409)
    new = [index for index, claim in enumerate(claims) if claim.is_new]
    stored, lane_ids = _store_whole(publisher, [(drafts[index], matched[index]) for index in new])
    answers = dict(zip(new, stored, strict=True))
    keyed = {claims[index].key: answer for index, answer in answers.items() if claims[index].key}
    store_answers(publisher, {key: (answer.message_id, answer.deliveries) for key, answer in keyed.items()})
    return [
        answers.get(index) or keyed.get(claim.key) or Accepted(*claim.answer)
        for index, claim in enumerate(claims)
    ], lane_ids


def _store_whole(
    publisher: Publisher | None, matched: Sequence[tuple[Draft, list[Candidate]]]
) -> tuple[list[Accepted], list[int]]:
    """The same as `_store`, and store their callbacks and settle what of it came before; in a transaction."""
    stored, lane_ids = _store(publisher, matched)
    fresh = [(answer.message_id, *pair) for answer, pair in zip(stored, matched, strict=True)]
    callbacks.add([(id, draft.callback) for id, draft, _ in fresh if draft.callback is not None])
    dedup.settle_duplicates(
        [
            dedup.Keyed(id, match.subscription_id, key)
            for id, draft, matches in fresh
            if any(match.deduplicates for match in matches)
            for match, key in dedup.keys(matches, document(draft.headers, draft.body))
        ]
    )
    return stored, lane_ids


def _claim(draft: Draft) -> Claim:
    return Claim(key=draft.idempotency_key or "", event_type=draft.event_type.name, body=draft.body)


def _match(drafts: Iterable[Draft]) -> list[list[Candidate]]:
    found: dict[int, list[Candidate]] = {}
    matched: list[list[Candidate]] = []
    for draft in drafts:
        if draft.event_type.pk not in found:
            found[draft.event_type.pk] = candidates(draft.event_type)
        matched.append(
            qualifying(
                found[draft.event_type.pk],
                document(draft.headers, draft.body),
                by_subscriber=draft.event_type.kind != Kind.QUEUE,
            )
        )
    return matched


def _store(
    publisher: Publisher | None, matched: Sequence[tuple[Draft, list[Candidate]]]
) -> tuple[list[Accepted], list[int]]:
    """Execute `accept.sql`, and return the answers and the lanes that have work now."""
    if not matched:
        return [], []
    pairs = [(ordinal, match) for ordinal, (_, matches) in enumerate(matched) for match in matches]
    drafts = [draft for draft, _ in matched]
    columns = {
        "publisher": None if publisher is None else publisher.pk,
        "ordinal": list(range(len(drafts))),
        "event_type": [draft.event_type.pk for draft in drafts],
        "headers": [orjson.dumps(dict(draft.headers)).decode() for draft in drafts],
        "content_type": [draft.content_type for draft in drafts],
        "body": [draft.body for draft in drafts],
        "match_ordinal": [ordinal for ordinal, _ in pairs],
        "match_subscription": [match.subscription_id for _, match in pairs],
        "match_subscriber": [match.subscriber_id for _, match in pairs],
        "match_group": [group for draft, matches in matched for group in _groups(draft, matches)],
        "queue_senders": settings.ENVIRONMENT.queue_senders,
    }
    row = first_row("accept", columns)
    assert row is not None
    message_ids, lane_ids = row
    counts = [len(matches) for _, matches in matched]
    return [Accepted(*pair) for pair in zip(message_ids, counts, strict=True)], lane_ids or []


def _groups(draft: Draft, matches: Sequence[Candidate]) -> Iterable[int | None]:
    return groups(matches) if draft.event_type.kind == Kind.QUEUE else repeat(None, len(matches))


def _is_json(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type == "application/json" or media_type.endswith("+json")
