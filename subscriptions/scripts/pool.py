"""The script pool of a process: a few workers, each used by a separate thread.

Batches are executed one at a time, so scripts leave a core to everything else; only during a long
batch does the other worker take the next. A slow script is moved to the slow worker until it is
fast again. So runaway scripts queue behind each other, and delay other scripts only the first time.
"""

import atexit
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from itertools import takewhile
from typing import Any

import orjson

from subscriptions.scripts.engine import MEMORY_BYTES, OUTPUT_TOO_LONG, SECONDS
from subscriptions.scripts.includes import located_line
from subscriptions.scripts.jobs import Job, Output, ScriptFault, output_of
from subscriptions.scripts.worker import Worker, WorkerDiedError

QUICK_WORKERS = 2
# Deliveries without a script, and the web server, come first.
QUICK_NICENESS, SLOW_NICENESS = 5, 15
SLOW_SECONDS = 0.1
# A batch waits at most this long for the previous batch.
TURN_SECONDS = 0.2
# A process killed from outside is not the script's fault: try the script once more.
MOST_DEATHS = 2

_RUNAWAY = f"stopped after {SECONDS * 1000:.0f} ms of processor time"
_WORDS = {
    "InternalError: interrupted": _RUNAWAY,
    "InternalError: out of memory": f"it needs more than {MEMORY_BYTES // 2**20} MB of memory",
    "out of memory": f"it needs more than {MEMORY_BYTES // 2**20} MB of memory",
}
# The texts of these errors do not quote the message, unless a name comes from it.
_ENGINES_OWN = re.compile(
    r"TypeError: cannot (?:read|set) property '(?P<property>[\w$]+)' of (?:undefined|null)"
    r"|ReferenceError: '?(?P<variable>[\w$]+)'? is not defined"
    r"|TypeError: (?:not a function|circular reference)"
    r"|TypeError: \$(?:outmessage is neither text nor JSON|outheader is no object|statuscode is no "
    r"number)"
    r"|RangeError: Maximum call stack size exceeded"
)
# The classes of other errors by their names; the text behind the name may be any.
_NAME = re.compile(r"[\w$]+")
_ERROR_NAMES = (
    *("Error", "EvalError", "InternalError", "RangeError", "ReferenceError", "SyntaxError"),
    *("TypeError", "URIError", "AggregateError"),
)

ScriptResult = Output | ScriptFault


class ScriptPool:
    def __init__(self) -> None:
        self._quick = ThreadPoolExecutor(QUICK_WORKERS, "scripts")
        self._slow = ThreadPoolExecutor(1, "slow-scripts")
        self._own = threading.local()
        self._turn = threading.Lock()
        # True while a batch lasts long: the others do not wait for it again.
        self._is_late = False
        self.workers: list[Worker] = []
        self._is_slow: set[str] = set()

    def run(self, jobs: Sequence[Job], *, seconds: float) -> Future[list[ScriptResult]]:
        """Execute jobs in order: as many as fit into `seconds`, and at least one."""
        quick = list(takewhile(lambda job: job.script not in self._is_slow, jobs))
        if not quick:
            return self._slow.submit(self._run, jobs[:1], seconds=seconds, niceness=SLOW_NICENESS)
        return self._quick.submit(self._run_in_turn, quick, seconds=seconds)

    def try_out(self, job: Job) -> ScriptResult:
        """Execute a person's trial, apart from the scripts of deliveries and publishers."""
        return self._slow.submit(self._run, [job], seconds=0, niceness=SLOW_NICENESS).result()[0]

    def check(self, script: str) -> ScriptFault | None:
        """Compile a script; return None if it is valid."""
        return self._quick.submit(self._check, script).result()

    def close(self) -> None:
        """End the processes; no job may be submitted afterwards."""
        self._quick.shutdown()
        self._slow.shutdown()
        for worker in self.workers:
            worker.end()

    def _run_in_turn(self, jobs: Sequence[Job], *, seconds: float) -> list[ScriptResult]:
        has_turn = self._turn.acquire(timeout=0 if self._is_late else TURN_SECONDS)
        self._is_late = not has_turn
        try:
            return self._run(jobs, seconds=seconds, niceness=QUICK_NICENESS)
        finally:
            if has_turn:
                self._turn.release()

    def _run(self, jobs: Sequence[Job], *, seconds: float, niceness: int) -> list[ScriptResult]:
        results: list[ScriptResult] = []
        deaths = 0
        while not results:
            try:
                for answer in self._answers(jobs, seconds=seconds, niceness=niceness):
                    script = jobs[len(results)].script
                    results.append(_result(answer, script))
                    self._record_speed(script, is_slow=answer["seconds"] >= SLOW_SECONDS)
            except WorkerDiedError as error:
                deaths += 1
                if results:
                    # The fatal job is the first of the next batch.
                    break
                if error.is_runaway:
                    self._record_speed(jobs[0].script, is_slow=True)
                    return [ScriptFault(text=_RUNAWAY)]
                if deaths >= MOST_DEATHS:
                    return [
                        ScriptFault(text="the process that executed it ended twice; see the log")
                    ]
        return results

    def _answers(self, jobs: Sequence[Job], *, seconds: float, niceness: int) -> Iterator[Any]:
        scripts = list(dict.fromkeys(job.script for job in jobs))
        request = {
            "seconds": seconds,
            "scripts": scripts,
            "jobs": [
                {
                    "script": scripts.index(job.script),
                    "message": job.message,
                    "is_json": job.is_json,
                    "headers": job.headers,
                }
                for job in jobs
            ],
        }
        return self._worker(niceness).answers(request)

    def _check(self, script: str) -> ScriptFault | None:
        try:
            [answer] = self._worker(QUICK_NICENESS).answers({"check": script})
        except WorkerDiedError:
            return ScriptFault(text="it takes too long to be read; write a shorter one")
        return _fault(answer, script) if answer else None

    def _worker(self, niceness: int) -> Worker:
        if not hasattr(self._own, "worker"):
            self._own.worker = Worker(niceness=niceness)
            self.workers.append(self._own.worker)
        worker: Worker = self._own.worker
        return worker

    def _record_speed(self, script: str, *, is_slow: bool) -> None:
        if is_slow:
            self._is_slow.add(script)
        else:
            self._is_slow.discard(script)


@cache
def pool() -> ScriptPool:
    """Return the pool of this process, created on first use: other processes do not pay for it."""
    made = ScriptPool()
    atexit.register(made.close)
    return made


def _result(answer: dict[str, Any], script: str) -> ScriptResult:
    if "error" in answer:
        fault = _fault(answer, script)
        return replace(fault, kind=_kind_of(answer["error"], script))
    if "body" in answer:
        return Output(body=answer["body"].encode(), is_json=True)
    try:
        return output_of(orjson.loads(answer["output"]))
    except orjson.JSONDecodeError:
        return ScriptFault(
            text="its output holds half a character (a lone surrogate), which cannot be sent"
        )


def _kind_of(thrown: str, script: str) -> str:
    """Return words for the thrown value, without its text; empty if the text is the engine's own.

    A name in the engine's text is none of the message's if the script has it.
    """
    own = _ENGINES_OWN.fullmatch(thrown)
    if thrown in _WORDS or thrown == OUTPUT_TOO_LONG:
        return ""
    if own and all(name in _NAME.findall(script) for name in own.groups() if name):
        return ""
    name = thrown.partition(":")[0]
    return f"it threw {name}" if name in _ERROR_NAMES else "it threw a value"


def _fault(answer: dict[str, Any], script: str) -> ScriptFault:
    text, line = str(answer["error"]), answer["line"]
    source = ""
    if line is not None:
        source, line = located_line(script, line)
    return ScriptFault(
        text=_WORDS.get(text, text), line=line, column=answer["column"], source=source
    )
