"""Joins: messages of several subscriptions of a subscriber, with the same activation id.

ALL: a message of each subscription is sent together, as a single message:

    stored ─▶ waits (PENDING, in no lane)
                ├─ the last one is stored ─▶ REDUNDANT: the joined message has its content
                ├─ its time is over ───────▶ EXPIRED, by the duty that expires all others
                └─ a person cancels it ────▶ CANCELLED

ONLY ONE: the first message is sent, and the others with the same activation id are REDUNDANT until
the join's time is over.

All of it is part of a message's storing transaction: a part is on disk with the message, and the
joined message with the settlement of the parts. So a crash leaves either all or nothing, and there
is no moment at which a restart could find half a join. Which parts wait is read from their
deliveries, locked; the key's row only lists them.

The races:

- Two publishers bring the two halves: they meet at the unique row of the key. The later waits for
  the earlier's commit, finds the part, and completes the join.
- Two publishers bring the same half: both parts wait. The older message is taken first, and the
  other is a part of the next join.
- A part expires, or a person cancels it, while the other half is stored: the first to lock the row
  decides. Either it is gone and the new part waits, or it is REDUNDANT.
- A part is resubmitted after the end: it is sent by itself, in the subscriber's lane.
- Two transactions have several keys: keys are taken in a fixed order, and the parts of all of them
  are locked in the order of ids, as everywhere.
- A subscription of the join becomes INACTIVE: it still belongs to the join. The others wait for
  it, and expire.
- A subscription of the join becomes SHADOW: it no longer belongs to the join. The waiting parts
  expire.
- A subscription of the join becomes HELD: the parts wait like others. The joined message is a
  delivery of the first subscription, and waits while it is HELD.
- The key's row is deleted: only after the last part has expired.

The joined message's first subscription by position sends it: by the endpoint, policy and script.
The lane is the parts' lane, which is notified anyway. The archive has parts and joined messages
like any others; a replay sends a part by itself.
"""

import base64
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from delivery.database import queries
from delivery.models import Message
from delivery.models.message import public_id
from delivery.publishing.dedup import identity_at_path
from delivery.publishing.drafts import Draft
from subscriptions.filters import Document
from subscriptions.matching.candidates import Candidate
from subscriptions.models import JoinMode, Subscription, SubscriptionStatus

ACTIVATION = "activation"
_PATH_OF_HEADER = f"$$->'Header'->>'{ACTIVATION}'"


@dataclass(frozen=True, slots=True)
class Arrived:
    """A stored message, a joining subscription, and the activation id.

    A message without an id has a key of its own: it can only wait, or be the first.
    """

    message_id: int
    candidate: Candidate
    activation: str | None

    @property
    def key(self) -> bytes:
        id = f"message {self.message_id}" if self.activation is None else f"id {self.activation}"
        candidate = self.candidate
        return hashlib.sha256(
            "\0".join(
                [str(candidate.subscriber_id), candidate.join_mode, candidate.join_name, id]
            ).encode()
        ).digest()


@dataclass(frozen=True, slots=True)
class Joined:
    """A joined message to store, for a subscription, in place of the parts."""

    draft: Draft
    candidate: Candidate
    key: bytes
    parts: Sequence[int]


def joins_of_message(
    message_id: int, matches: Iterable[Candidate], document: Document
) -> list[Arrived]:
    """Return the joins of a stored message; a SHADOW match is settled already."""
    return [
        Arrived(message_id, match, identity_at_path(match.join_path or _PATH_OF_HEADER)(document))
        for match in matches
        if match.joins and not match.is_shadow
    ]


def join_messages(found: Sequence[Arrived]) -> list[Joined]:
    """Take these deliveries out of their lanes, or settle them; return the complete messages.

    Call it in their transaction, store the messages, and then settle their parts.
    """
    if not found:
        return []
    queries.execute_statement("take_join_keys", {"key": [arrived.key for arrived in found]})
    if first := [arrived for arrived in found if arrived.candidate.join_mode == JoinMode.ONLY_ONE]:
        queries.execute_statement("settle_not_first", _columns(first))
    waiting = [arrived for arrived in found if arrived.candidate.join_mode == JoinMode.ALL]
    if not waiting:
        return []
    queries.execute_statement("make_parts_wait", _columns(waiting))
    keys = {arrived.key: arrived for arrived in waiting}
    parts: defaultdict[bytes, dict[int, list[tuple[int, int]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for key, id, message_id, subscription_id in queries.rows("waiting_parts", {"key": list(keys)}):
        parts[bytes(key)][subscription_id].append((id, message_id))
    return [joined for key, arrived in keys.items() for joined in _complete(arrived, parts[key])]


def settle_parts(joined: Joined, *, message_id: int) -> None:
    """Settle the parts of a stored joined message."""
    reason = (
        f"is part of {public_id(message_id)}, which has all messages of the join "
        f"{joined.candidate.join_name}"
    )
    columns: dict[str, Any] = {"delivery": list(joined.parts), "key": joined.key, "reason": reason}
    queries.execute_statement("settle_parts", columns)


def _columns(found: Sequence[Arrived]) -> dict[str, Any]:
    return {
        "message": [arrived.message_id for arrived in found],
        "subscription": [arrived.candidate.subscription_id for arrived in found],
        "key": [arrived.key for arrived in found],
    }


def _complete(arrived: Arrived, parts: dict[int, list[tuple[int, int]]]) -> list[Joined]:
    """Return the joined messages with a waiting part of each subscription: usually one or none."""
    name = arrived.candidate.join_name
    members = list(
        Subscription.objects.filter(
            subscriber=arrived.candidate.subscriber_id, join_mode=JoinMode.ALL, join_name=name
        )
        .exclude(status=SubscriptionStatus.SHADOW)
        .select_related("event_type", "subscriber")
        .order_by("position", "id")
    )
    found = []
    for turn in range(min((len(parts.get(member.pk, [])) for member in members), default=0)):
        chosen = [parts[member.pk][turn] for member in members]
        draft = Draft(
            event_type=members[0].event_type,
            headers={"content-type": "application/json", ACTIVATION: arrived.activation or ""},
            content_type="application/json",
            body=_body(name, arrived.activation, [message_id for _, message_id in chosen]),
        )
        found.append(Joined(draft, _candidate(members[0]), arrived.key, [id for id, _ in chosen]))
    return found


def _candidate(row: Subscription) -> Candidate:
    """Return the subscription for the joined message, without dedup and join."""
    return Candidate(
        row.pk, row.subscriber_id, "", "", "", row.subscriber.match_mode, join_name=row.join_name
    )


def _body(name: str, activation: str | None, message_ids: Sequence[int]) -> bytes:
    messages = Message.objects.select_related("event_type").in_bulk(message_ids)
    return orjson.dumps(
        {
            "join": name,
            "activation": activation,
            "messages": [_content(messages[message_id]) for message_id in message_ids],
        }
    )


def _content(message: Message) -> dict[str, Any]:
    """Return a message in the form in which mailboxes return it: parsed if the body is JSON."""
    body = bytes(message.body)
    content = {
        "id": message.public_id,
        "event": message.event_type.name,
        "published_at": message.published_at,
        "headers": message.headers,
    }
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return content | {"body_base64": base64.b64encode(body).decode()}
    # The very text, so no number is changed.
    return content | {"body": orjson.Fragment(body)}
