"""Publishing: one transaction stores messages with every delivery they owe.

A crash before the commit leaves nothing, a crash after it everything. A publisher without an answer
repeats with the same idempotency key and gets the first answer. Two with the same key at the same
moment meet at the key's unique row: the second waits there until the first has committed, and then
finds the answer.
"""

from collections.abc import Sequence

from django.db import IntegrityError, connection, transaction

from delivery.publishing import callbacks, dedup, joins, shadow
from delivery.publishing.drafts import (
    DESTINATION,
    Destinations,
    Draft,
    PublishRefusedError,
    checked_draft,
)
from delivery.publishing.idempotency import Claim, claim_keys, store_answers
from delivery.publishing.owed_deliveries import Owed
from delivery.publishing.plain import needs_more_statements
from delivery.publishing.stored_messages import Accepted, NewWork, store_messages
from subscriptions.filters import document
from subscriptions.matching.candidates import Candidate
from subscriptions.matching.match import candidates, qualifying_candidates
from subscriptions.models import EventType, Kind, Publisher


def publish(publisher: Publisher, drafts: Sequence[Draft]) -> list[Accepted]:
    """Store the drafts in the order given, all or none, and return the answer to each.

    When it returns, they are on disk with their deliveries and the senders are notified. A draft
    with an idempotency key used within 24 hours gets the first answer again. Raises
    PublishRefusedError for the first unacceptable draft, or whose event type was deleted meanwhile.
    """
    destinations: Destinations = {}
    drafts = [
        checked_draft(draft, publisher=publisher, index=index, destinations=destinations)
        for index, draft in enumerate(drafts)
    ]
    try:
        accepted, work = _publish(publisher, drafts)
    except IntegrityError:
        # A subscription was deleted between matching and storing: match again.
        accepted, work = _publish_again(publisher, drafts)
    work.notify()
    return accepted


def publish_own(drafts: Sequence[Draft]) -> list[Accepted]:
    """Store Inturn's own messages in the caller's transaction.

    Notify the senders after the commit.
    """
    accepted, work = _store_whole(None, list(zip(drafts, match_drafts(drafts), strict=True)))
    transaction.on_commit(work.notify)
    return accepted


def _publish(publisher: Publisher, drafts: Sequence[Draft]) -> tuple[list[Accepted], NewWork]:
    matched = match_drafts(drafts)
    is_volatile = all(draft.event_type.is_volatile for draft in drafts)
    if not is_volatile and not any(map(needs_more_statements, drafts, matched)):
        # A single statement is a transaction by itself: no BEGIN, no COMMIT.
        return _store(publisher, list(zip(drafts, matched, strict=True)))
    with transaction.atomic():
        if is_volatile:
            _commit_asynchronously()
        return _publish_once(publisher, drafts, matched)


def _commit_asynchronously() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")


def _publish_again(publisher: Publisher, drafts: Sequence[Draft]) -> tuple[list[Accepted], NewWork]:
    try:
        return _publish(publisher, drafts)
    except IntegrityError:
        refused = refusal_of_deleted(publisher, drafts)
        if refused is None:
            raise
        raise refused from None


def refusal_of_deleted(publisher: Publisher, drafts: Sequence[Draft]) -> PublishRefusedError | None:
    """Return the refusal of the first draft with a deleted row."""
    if not Publisher.objects.filter(pk=publisher.pk).exists():
        return PublishRefusedError(
            f"The publisher {publisher} has just been deleted.", index=0, status=404
        )
    event_types = {draft.event_type.pk for draft in drafts}
    existing = set(EventType.objects.filter(pk__in=event_types).values_list("pk", flat=True))
    for index, draft in enumerate(drafts):
        if draft.event_type.pk not in existing:
            detail = f"The event type {draft.event_type} has just been deleted."
            return PublishRefusedError(detail, index=index, status=404)
    return None


def _publish_once(
    publisher: Publisher, drafts: Sequence[Draft], matched: Sequence[list[Candidate]]
) -> tuple[list[Accepted], NewWork]:
    claims = claim_keys(publisher, [claim_of(draft) for draft in drafts])
    for index, claim in enumerate(claims):
        if claim.is_conflict:
            detail = (
                "This Idempotency-Key was used for another message within 24 hours; use a new key."
            )
            raise PublishRefusedError(detail, index=index, status=409)
    new = [index for index, claim in enumerate(claims) if claim.is_new]
    for index in new:
        if (refusal := drafts[index].refusal) is not None:
            raise refusal
    stored, work = _store_whole(publisher, [(drafts[index], matched[index]) for index in new])
    answers = dict(zip(new, stored, strict=True))
    keyed = {claims[index].key: answer for index, answer in answers.items() if claims[index].key}
    store_answers(
        publisher, {key: (answer.message_id, answer.deliveries) for key, answer in keyed.items()}
    )
    return [
        answers.get(index) or keyed.get(claim.key) or Accepted(*claim.answer)
        for index, claim in enumerate(claims)
    ], work


def _store_whole(
    publisher: Publisher | None, matched: Sequence[tuple[Draft, list[Candidate]]]
) -> tuple[list[Accepted], NewWork]:
    """Store messages like `_store`, and complete them; call it in a transaction."""
    stored, work = _store(publisher, matched)
    complete_messages(stored, matched, publisher=publisher)
    return stored, work


def complete_messages(
    stored: Sequence[Accepted],
    matched: Sequence[tuple[Draft, list[Candidate]]],
    *,
    publisher: Publisher | None = None,
) -> None:
    """Complete just stored messages; call it in their transaction.

    Their callbacks are stored, SHADOW matches and duplicates are settled, and the others are
    joined.
    """
    fresh = [(answer.message_id, *pair) for answer, pair in zip(stored, matched, strict=True)]
    shadow.settle_matches(
        [(id, match) for id, _, matches in fresh for match in matches if match.is_shadow]
    )
    callbacks.add_callbacks(
        [(id, draft.callback) for id, draft, _ in fresh if draft.callback is not None]
    )
    dedup.settle_duplicates(
        [
            dedup.Keyed(id, match.subscription_id, key)
            for id, draft, matches in fresh
            if any(match.deduplicates for match in matches)
            for match, key in dedup.dedup_keys(matches, document(draft.headers, draft.body))
        ]
    )
    _join(publisher, fresh)


def _join(publisher: Publisher | None, fresh: Sequence[tuple[int, Draft, list[Candidate]]]) -> None:
    """Join the stored messages; a joined message waits in a lane notified anyway."""
    arrived = [
        arrived
        for id, draft, matches in fresh
        if any(match.joins for match in matches)
        for arrived in joins.joins_of_message(id, matches, document(draft.headers, draft.body))
    ]
    for joined in joins.join_messages(arrived):
        (stored,), _ = _store(publisher, [(joined.draft, [joined.candidate])])
        joins.settle_parts(joined, message_id=stored.message_id)


def _store(
    publisher: Publisher | None, matched: Sequence[tuple[Draft, list[Candidate]]]
) -> tuple[list[Accepted], NewWork]:
    publisher_id = None if publisher is None else publisher.pk
    stored = store_messages([Owed(publisher_id, draft, matches) for draft, matches in matched])
    if stored is None:
        # The database's error for a deleted publisher or event type.
        raise IntegrityError("a subscription has just been deleted")
    accepted, work = stored
    return [answer for answer in accepted if answer is not None], work


def claim_of(draft: Draft) -> Claim:
    return Claim(
        key=draft.idempotency_key or "",
        event_type=draft.event_type.name,
        destination=draft.headers.get(DESTINATION, ""),
        body=draft.body,
    )


def match_drafts(drafts: Sequence[Draft]) -> list[list[Candidate]]:
    """Return the qualifying subscriptions of each draft."""
    of_type: dict[int, list[Draft]] = {}
    for draft in drafts:
        of_type.setdefault(draft.event_type.pk, []).append(draft)
    by_event_type = {
        id: candidates(of_one_type[0].event_type, [draft.headers for draft in of_one_type])
        for id, of_one_type in of_type.items()
    }
    return [
        qualifying_candidates(
            by_event_type[draft.event_type.pk],
            document(draft.headers, draft.body),
            by_subscriber=draft.event_type.kind != Kind.QUEUE,
            to=draft.destination,
        )
        for draft in drafts
    ]
