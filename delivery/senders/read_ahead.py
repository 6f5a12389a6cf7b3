"""Reading ahead for a lane when little is left, by the statement of the lane's window."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from delivery.senders.context import SenderContext
from delivery.senders.entries import ScriptOutputMade
from delivery.senders.lanes.lane import SenderLane
from delivery.senders.lanes.window import WHOLE_LANE
from delivery.senders.parcel import Group, Key
from delivery.senders.read_connection import RunRequest, groups_of
from delivery.senders.script_runs import transformed_parcels


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """The limits of a read: rows, bytes, no closed keys, no deliveries that are in memory."""

    rows: int
    max_bytes: int
    closed: set[Key]
    generation: int
    in_memory: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The result of a read; the keys in `more` may have more. `is_full`: it filled the request.

    `outputs` are those of scripts, to be stored before anything is sent.
    """

    groups: Sequence[Group]
    more: set[Key]
    is_full: bool = False
    outputs: Sequence[ScriptOutputMade] = ()


async def read_ahead(lane: SenderLane, context: SenderContext) -> None:
    """Read if the lane needs more, and record a run ahead if the window says so."""
    rows, max_bytes = lane.rows(context.rows_of_a_lane()), context.bytes_of_a_lane()
    closed = lane.stock.closed(rows=rows, max_bytes=max_bytes)
    if not lane.wants_more(closed, rows=rows):
        return
    lane.notified.clear()
    generation, in_memory = lane.stock.begin_reading()
    reading = ReadRequest(
        rows=rows, max_bytes=max_bytes, closed=closed, generation=generation, in_memory=in_memory
    )
    found = await (_read_in_order if lane.window.records_ahead else _read_due)(
        lane, context, reading
    )
    lane.note_read(executed_scripts=bool(found.outputs))
    parcels = [parcel for group in found.groups for parcel in group.left]
    await context.load(parcel.subscription_id for parcel in parcels)
    if lane.window.records_ahead and parcels and lane.stock.generation == generation:
        if not lane.is_sending:
            # Runs while this task waits for the commit.
            asyncio.get_running_loop().call_soon(lane.prepare, context.make_request, parcels[0])
        await context.commit(lane, lane.run(parcels), *found.outputs)
        if lane.stock.generation != generation:
            # Nothing of the run is sent.
            await context.commit(lane, lane.run())
    elif found.outputs and lane.stock.generation == generation:
        await context.commit(lane, *found.outputs)
    if lane.stock.generation == generation:
        lane.stock.add(found.groups, more=found.more, is_full=found.is_full)


async def _read_in_order(lane: SenderLane, context: SenderContext, reading: ReadRequest) -> Found:
    """Read the next run, or the next piece of a run that goes on.

    When the run is over the lane reads again, unless the run leaves nothing: there may be more,
    even if only skipped deliveries.
    """
    run = lane.run_to_read()
    limits = run.limits(reading.rows)
    request = RunRequest(
        lane_id=lane.id,
        limits=limits,
        max_bytes=reading.max_bytes,
        in_memory=tuple(reading.in_memory),
    )
    read = await context.read_connection.parcels(request)
    if run.began_at is None:
        run.began_at = context.read_connection.requested_at
    parcels, outputs = await transformed_parcels(read, context, max_bytes=reading.max_bytes)
    if lane.stock.generation == reading.generation:
        size = sum(len(parcel.body) for parcel in read)
        skipped = sum(parcel.is_skipped for parcel in parcels)
        is_cut = len(parcels) < len(read) or size >= reading.max_bytes or bool(reading.in_memory)
        run.add(limits, fresh=len(parcels) - skipped, skipped=skipped, is_cut=is_cut)
        if not parcels and not run.left:
            # The earlier pieces were the whole run.
            await context.commit(lane, *lane.stops.record_run(run))
    return Found(
        groups=[
            Group(parcel.message_id, None, [parcel], reading.generation, run) for parcel in parcels
        ],
        more={WHOLE_LANE} if parcels or run.goes_on else set(),
        is_full=not run.is_early and (len(parcels) >= limits.rows or len(parcels) < len(read)),
        outputs=outputs,
    )


async def _read_due(lane: SenderLane, context: SenderContext, reading: ReadRequest) -> Found:
    most = None if lane.window.capacity is None else reading.rows
    parameters: dict[str, Any] = {
        "lane": lane.id,
        "rows": reading.rows,
        "most": most,
        "bytes": reading.max_bytes,
        "in_memory": list(reading.in_memory),
        "excluded": [key for key in reading.closed if isinstance(key, int)],
        "excluded_origins": [key for key in reading.closed if isinstance(key, str)],
        "is_traced": context.read_connection.is_traced,
    }
    rows = await context.read_connection.fetch(lane.window.statement, parameters)
    requested_at = context.read_connection.requested_at
    # A delivery that was in memory during the read may be settled by now, although its row says
    # otherwise.
    groups = [
        group
        for group in groups_of(rows, requested_at=requested_at, generation=reading.generation)
        if reading.in_memory.isdisjoint(parcel.delivery_id for parcel in group.left)
    ]
    is_cut = (
        len(rows) == most
        or 2 * sum(len(group.left[0].body) for group in groups) >= reading.max_bytes
    )
    more = (lane.stock.more & reading.closed) | _keys_with_more(rows, groups, is_cut=is_cut)
    groups, left, outputs = await _transformed_groups(groups, context, max_bytes=reading.max_bytes)
    return Found(groups=groups, more=more | left, outputs=outputs)


async def _transformed_groups(
    groups: list[Group], context: SenderContext, *, max_bytes: int
) -> tuple[list[Group], set[Key], Sequence[ScriptOutputMade]]:
    """Execute scripts; also return the keys of groups that must be read again for lack of time."""
    read = [parcel for group in groups for parcel in group.left]
    parcels, outputs = await transformed_parcels(read, context, max_bytes=max_bytes)
    if parcels is read:
        return groups, set(), ()
    made = {parcel.delivery_id: parcel for parcel in parcels}
    done = [group for group in groups if all(parcel.delivery_id in made for parcel in group.left)]
    for group in done:
        group.left[:] = [made[parcel.delivery_id] for parcel in group.left]
    left = {parcel.key for parcel in read if parcel.delivery_id not in made}
    return done, left, outputs


def _keys_with_more(
    rows: Sequence[Mapping[str, Any]], groups: Collection[Group], *, is_cut: bool
) -> set[Key]:
    """Return the keys of subscriptions that filled their share of the rows."""
    counts = Counter(row["subscription_id"] for row in rows)
    filled = {
        row["subscription_id"]
        for row in rows
        if is_cut or counts[row["subscription_id"]] >= row["share"]
    }
    return {
        parcel.key for group in groups for parcel in group.left if parcel.subscription_id in filled
    }
