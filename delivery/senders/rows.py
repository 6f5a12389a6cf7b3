"""Parcels of the rows that a sender reads.

`asked_at`, in seconds since boot, was before they were read: so what has a time to live is not sent past it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from delivery.senders.parcel import Group, Parcel


def groups_of(rows: Sequence[Mapping[str, Any]], *, asked_at: float, generation: int = 0) -> list[Group]:
    """Make groups of the rows of `read_groups.sql`, or of those of `read_due.sql`, each a group of its own.

    The `generation` was the lane's before they were read: what is cancelled meanwhile is not sent.
    """
    groups: dict[tuple[int, int | None, int], Group] = {}
    for row in rows:
        number = row["queue_group"]
        key = row["message_id"], number, row["id"] if number is None else 0
        group = groups.get(key)
        if group is None:
            groups[key] = group = Group(row["message_id"], number, left=[], generation=generation)
        body = group.left[0].body if group.left else row["body"]
        group.left.append(parcel_of(row, body, asked_at=asked_at))
    return list(groups.values())


def parcel_of(row: Mapping[str, Any], body: bytes, *, asked_at: float) -> Parcel:
    """Make a parcel of a row; of a group the body is in the first row only."""
    seconds_left = row["seconds_left"]
    return Parcel(
        delivery_id=row["id"],
        subscription_id=row["subscription_id"],
        message_id=row["message_id"],
        attempts=row["attempts"],
        attempts_before=row["attempts_before"],
        is_skipped=row["skipped"],
        redelivery=row["redelivery"],
        event=row["event"],
        content_type=row["content_type"],
        body=body,
        callback_id=row.get("callback_id"),
        url=row.get("callback_url") or "",
        origin=row.get("callback_origin") or "",
        seconds_since_first=row.get("seconds_since_first"),
        deadline=None if seconds_left is None else asked_at + seconds_left,
        server_started_at=row["server_started_at"],
        replay_id=row["replay_id"],
    )
