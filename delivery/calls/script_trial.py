"""A trial of a script: it is executed on a message, saved or not; nothing is stored or sent.

The waiting thread of the web server is lost to others, so few trials run at a time. They share the
process of slow scripts, and so delay no delivery and no answer of a SYNC subscription.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import orjson
from django.conf import settings

from delivery.calls.script_runs import answer_of_script
from delivery.calls.slots import call_slot
from delivery.calls.trial import Trial
from subscriptions.checks import script as checks
from subscriptions.scripts.includes import inlined_script
from subscriptions.scripts.jobs import Job, Output, ScriptFault
from subscriptions.scripts.pool import pool
from subscriptions.scripts.unkept import unkept_values
from subscriptions.values.media_types import is_json

_JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedScript:
    """The request to be sent, or the answer to a publisher.

    `is_unchanged`: the body is the message's own. `status_code` is the answer's. With a `fault`
    nothing would be sent. `unkept` describes the values of the message `$inmessage` cannot keep.
    """

    fault: ScriptFault | None = None
    body: bytes = field(default=b"", repr=False)
    is_unchanged: bool = False
    content_type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    path: str = ""
    status_code: int | None = None
    unkept: Sequence[str] = ()


def try_script(script: str, trial: Trial, *, is_sync: bool) -> TriedScript:
    """Execute a script on a message; raises NoSlotError."""
    with call_slot("script", most=settings.ENVIRONMENT.web_threads // 8):
        common = checks.library()
        if fault := checks.fault(script, common=common):
            return TriedScript(fault=fault)
        result = pool().try_out(_job(inlined_script(script, common), trial))
    if isinstance(result, ScriptFault):
        return TriedScript(fault=result)
    tried = _answered(result) if is_sync else _sent(result, trial)
    unkept = unkept_values(trial.body) if is_json(trial.content_type) else ()
    return replace(tried, unkept=unkept)


def _job(script: str, trial: Trial) -> Job:
    return Job(
        script=script,
        message=trial.body.decode(errors="replace"),
        is_json=is_json(trial.content_type),
        headers=orjson.dumps(dict(trial.headers)).decode(),
    )


def _sent(output: Output, trial: Trial) -> TriedScript:
    is_new_json = output.is_json and not is_json(trial.content_type)
    return TriedScript(
        body=trial.body if output.body is None else output.body,
        is_unchanged=output.body is None,
        content_type=_JSON if is_new_json else trial.content_type,
        headers=output.headers,
        path=output.path,
    )


def _answered(output: Output) -> TriedScript:
    answer = answer_of_script(output)
    return TriedScript(
        body=answer.body, content_type=answer.content_type, status_code=answer.status_code
    )
