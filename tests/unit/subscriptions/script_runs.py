"""Jobs for a script pool, and their results."""

import orjson

from subscriptions.scripts.jobs import Job, Output
from subscriptions.scripts.pool import ScriptPool, ScriptResult


def job(script: str, message: object = None, **headers: str) -> Job:
    text = orjson.dumps(message).decode()
    return Job(script=script, message=text, is_json=True, headers=orjson.dumps(headers).decode())


def run(pool: ScriptPool, script: str, message: object = None, **headers: str) -> ScriptResult:
    (result,) = pool.run([job(script, message, **headers)], seconds=0).result()
    return result


def made(result: ScriptResult) -> Output:
    assert isinstance(result, Output), result
    return result
