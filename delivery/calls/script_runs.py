"""Scripts while a caller waits: for a SYNC subscription's answer, or for a test message."""

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

import orjson

from delivery.calls.http import Called, EndpointAnswer
from delivery.outcome import EXCERPT_BYTES, Outcome, answer_class, script_failed
from delivery.senders.parcel import Endpoint, Parcel
from delivery.senders.script_runs import job_of, transform_parcel
from delivery.states import OutcomeClass
from subscriptions.scripts.jobs import Output, ScriptFault
from subscriptions.scripts.pool import ScriptResult, pool

_TEXT = "text/plain; charset=utf-8"
_JSON = "application/json"


def answer_by_script(
    parcel: Parcel, endpoint: Endpoint, *, headers: Mapping[str, str], now: datetime
) -> Called:
    """Make the answer with the script: `$outmessage` is the body and `$statuscode` the status."""
    start = time.perf_counter()
    result = _executed(parcel, endpoint, headers)
    duration_ms = round((time.perf_counter() - start) * 1000)
    if isinstance(result, ScriptFault):
        return Called(replace(script_failed(result, now=now), duration_ms=duration_ms))
    answer = answer_of_script(result)
    outcome, error = answer_class(answer.status_code, success_codes=endpoint.rules.success_codes)
    excerpt = b"" if outcome is OutcomeClass.SUCCESS else answer.body[:EXCERPT_BYTES]
    return Called(
        Outcome(
            outcome=outcome,
            started_at=now,
            duration_ms=duration_ms,
            status_code=answer.status_code,
            error=error,
            excerpt=excerpt,
        ),
        answer,
    )


def transformed_now(parcel: Parcel, endpoint: Endpoint, *, headers: Mapping[str, str]) -> Parcel:
    """Return the parcel with the output of the endpoint's script, if it has a script.

    A fault is in the parcel's transformation.
    """
    if not endpoint.script:
        return parcel
    made, _ = transform_parcel(parcel, endpoint, _executed(parcel, endpoint, headers))
    return made


def _executed(parcel: Parcel, endpoint: Endpoint, headers: Mapping[str, str]) -> ScriptResult:
    job = job_of(parcel, endpoint, headers=orjson.dumps(dict(headers)).decode())
    return pool().run([job], seconds=0).result()[0]


def answer_of_script(output: Output) -> EndpointAnswer:
    body = output.body or b""
    content_type = _JSON if output.is_json else _TEXT if body else ""
    return EndpointAnswer(status_code=output.status_code, content_type=content_type, body=body)
