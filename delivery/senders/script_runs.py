"""Scripts of subscriptions: executed when deliveries are read, stored before the first attempt.

Deliveries to subscriptions that never had a script skip all of this. `README.md` has states, races
and crash windows.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from delivery.senders.entries import MOST_OUTPUTS, ScriptOutputMade
from delivery.senders.parcel import Endpoint, Parcel, Transformation
from subscriptions.scripts.jobs import Job, ScriptFault
from subscriptions.scripts.pool import ScriptResult, pool
from subscriptions.values.media_types import is_json

# The web server executes scripts as well, and has no need of the senders' HTTP client (9 MB).
if TYPE_CHECKING:
    from delivery.senders.context import SenderContext

# The first delivery of a read waits at most this long for the scripts of deliveries behind it; the
# rest is read again.
BATCH_SECONDS = 0.1
BATCH_BYTES = 256 * 1024

Outputs = Sequence[ScriptOutputMade]


async def transformed_parcels(
    read: list[Parcel], context: "SenderContext", *, max_bytes: int
) -> tuple[list[Parcel], Outputs]:
    """Return the parcels as sent, or the first of them, and the outputs to store before sending.

    Without any script the result is the same list object.
    """
    await context.load(parcel.subscription_id for parcel in read)
    scripted = [
        parcel for parcel in read if context.endpoints[parcel.subscription_id].script_version
    ]
    if not scripted:
        return read, ()
    parameters = {"delivery": [parcel.delivery_id for parcel in scripted], "bytes": max_bytes}
    rows = {
        row["id"]: row for row in await context.read_connection.fetch("script_inputs", parameters)
    }
    if len(rows) < len(scripted):
        # The stored outputs of the rest exceed the memory limit.
        read = read[: read.index(scripted[len(rows)])]
    batch = [
        Scripted(parcel, context.endpoints[parcel.subscription_id], rows[parcel.delivery_id])
        for parcel in scripted[: len(rows)]
    ]
    return _made(read, batch, await _execute(batch), room=max_bytes)


@dataclass(frozen=True, slots=True)
class Scripted:
    """A parcel whose subscription has, or had, a script; `row` is from `script_inputs.sql`."""

    parcel: Parcel
    endpoint: Endpoint
    row: Mapping[str, Any]

    @property
    def is_to_be_executed(self) -> bool:
        """True if the current script makes the output.

        The script is executed if nothing is stored, and no attempt was made since the delivery was
        published or resubmitted. A stored output is replaced only while no attempt was ever made:
        an output that may have been sent stays.
        """
        parcel, version = self.parcel, self.row["script_version"]
        if not self.endpoint.script:
            return False
        if version is None or parcel.is_volatile:
            return parcel.attempts == parcel.attempts_before
        return parcel.attempts == 0 and version < self.endpoint.script_version


async def _execute(batch: Sequence[Scripted]) -> dict[int, ScriptResult]:
    """Return the results within the limits of a batch, by delivery; always including the first."""
    jobs = {
        job.parcel.delivery_id: job_of(job.parcel, job.endpoint, headers=job.row["headers"])
        for job in _first_jobs([job for job in batch if job.is_to_be_executed])
    }
    if not jobs:
        return {}
    results = await asyncio.wrap_future(pool().run(list(jobs.values()), seconds=BATCH_SECONDS))
    return dict(zip(jobs, results, strict=False))


def _first_jobs(executed: Sequence[Scripted]) -> Sequence[Scripted]:
    bytes_so_far = accumulate(len(job.parcel.body) for job in executed)
    fitting = sum(total <= BATCH_BYTES for total in bytes_so_far)
    return executed[: min(max(fitting, 1), MOST_OUTPUTS)]


def _made(
    read: Sequence[Parcel],
    batch: Sequence[Scripted],
    results: Mapping[int, ScriptResult],
    *,
    room: int,
) -> tuple[list[Parcel], Outputs]:
    """Return the parcels before the first that has to wait for its script or for memory."""
    known = {job.parcel.delivery_id: job for job in batch}
    parcels: list[Parcel] = []
    outputs: list[ScriptOutputMade] = []
    for parcel in read:
        job = known.get(parcel.delivery_id)
        if room < 0 or (
            job is not None and job.is_to_be_executed and parcel.delivery_id not in results
        ):
            break
        if job is None:
            parcels.append(parcel)
        elif (result := results.get(parcel.delivery_id)) is None:
            parcels.append(with_stored_output(parcel, job.row))
        else:
            made, output = transform_parcel(parcel, job.endpoint, result)
            parcels.append(made)
            outputs += [output] if output is not None and not parcel.is_volatile else []
            room -= len(made.body)
    return parcels, outputs


def job_of(parcel: Parcel, endpoint: Endpoint, *, headers: str) -> Job:
    return Job(
        script=endpoint.script,
        message=parcel.body.decode(errors="replace"),
        is_json=is_json(parcel.content_type),
        headers=headers,
    )


def transform_parcel(
    parcel: Parcel, endpoint: Endpoint, result: ScriptResult
) -> tuple[Parcel, ScriptOutputMade | None]:
    """Return the parcel with the script's output, and the output to store.

    A fault stores nothing.
    """
    if isinstance(result, ScriptFault):
        return replace(parcel, transformation=Transformation(fault=result)), None
    content_type = "application/json" if result.is_json and not is_json(parcel.content_type) else ""
    output = ScriptOutputMade(
        lane_id=endpoint.lane_id,
        delivery_id=parcel.delivery_id,
        script_version=endpoint.script_version,
        body=result.body,
        content_type=content_type,
        headers=result.headers,
        path=result.path,
    )
    return _with(parcel, output), output


def with_stored_output(parcel: Parcel, row: Mapping[str, Any]) -> Parcel:
    """Return the parcel with the stored output, if any."""
    if row["script_version"] is None or parcel.is_volatile:
        return parcel
    output = ScriptOutputMade(
        lane_id=0,
        delivery_id=parcel.delivery_id,
        script_version=row["script_version"],
        body=row["body"],
        content_type=row["content_type"],
        headers=row["output_headers"],
        path=row["path"],
    )
    return _with(parcel, output)


def _with(parcel: Parcel, output: ScriptOutputMade) -> Parcel:
    return replace(
        parcel,
        body=parcel.body if output.body is None else output.body,
        content_type=output.content_type or parcel.content_type,
        transformation=Transformation(headers=output.headers, path=output.path),
    )
