"""The process for scripts: it reads jobs from standard input, a socket, and answers.

It is started by path, with an empty environment (`subscriptions.scripts.worker`), and imports
nothing of Inturn. So a script outside of the engine finds no settings, keys or database. Each
script gets a new engine, so no script sees the leftovers of another. There are three limits: the
engine's own on processor time, memory and stack, which a script sees as an error; the kernel's
timer of processor time, which ends the process where the engine does not check (a native loop); and
the kernel's limit on memory.
"""

import json
import os
import resource
import signal
import socket
import struct
import sys
import time

# The module `quickjs` starts a thread for a class unused here.
import _quickjs as quickjs

SECONDS = 0.5
# The engine does not interrupt native functions.
KILL_SECONDS = 2 * SECONDS
MEMORY_BYTES = 64 * 1024 * 1024
STACK_BYTES = 256 * 1024
PROCESS_BYTES = 512 * 1024 * 1024
LONGEST_OUTPUT = 4 * 1024 * 1024
OUTPUT_TOO_LONG = f"its output is longer than {LONGEST_OUTPUT // 2**20} MiB"
# A script may throw a text of any length; nobody reads more of it.
LONGEST_ERROR = 4096
LENGTH = struct.Struct("!I")

# On the script's own first line, to keep its line numbers. Ends the program before the script runs.
_NOT_RUN = "throw null;"
# Discards the value of the script: converting it to a Python object may fail or cost memory.
_NO_VALUE = "\n;void 0"
# Header names are matched as in filters (`subscriptions.filters.document.header_name`). Assigned to
# `this` rather than declared by `var`, so a script may declare the same names in any way. The value
# collects the output. The functions it needs are captured before the script runs, which may replace
# `JSON`, `String` or `Object.prototype`. It returns the body of the usual output, an object and
# nothing else, as JSON; 0 for any other output, which `_COLLECTOR` collects: to compile it takes
# longer than to execute most scripts.
_BEGINNING = """
this.$outmessage = this.$param = void 0; this.$statuscode = 200; this.$outheader = {};
this.$inheader = new Proxy($inheader, { get: function (headers, name) {
    var is_other = typeof name === 'string' && !(name in headers);
    return headers[is_other ? name.toLowerCase().replace(/_/g, '-') : name];
} });
(function (stringify, String, Object, keys) {
    'use strict';
    var body;
    return function (collect) {
        if (collect) return collect(stringify, String, Object, keys, body);
        if (typeof $outmessage !== 'object') return 0;
        body = stringify($outmessage);
        return typeof body === 'string' && typeof $param === 'undefined' && $statuscode === 200
            && typeof $outheader === 'object' && $outheader !== null && !keys($outheader).length
            ? body : 0;
    };
})(JSON.stringify, String, Object, Object.keys)
"""
_COLLECTOR = """
(function (stringify, String, Object, keys, body) {
    'use strict';
    var out = { body: null, is_json: false, param: '', headers: null, status: $statuscode };
    if (typeof $outmessage === 'string') {
        out.body = $outmessage;
    } else if (typeof $outmessage !== 'undefined') {
        out.body = typeof body === 'string' ? body : stringify($outmessage);
        out.is_json = true;
        if (typeof out.body !== 'string') {
            throw new TypeError('$outmessage is neither text nor JSON');
        }
    }
    if (typeof $param !== 'undefined' && $param !== null) out.param = String($param);
    if (typeof $outheader !== 'object' || $outheader === null) {
        throw new TypeError('$outheader is no object');
    }
    var names = keys($outheader);
    if (names.length) {
        out.headers = Object.create(null);
        for (var i = 0; i < names.length; i++) {
            out.headers[names[i]] = String($outheader[names[i]]);
        }
    }
    if (typeof out.status !== 'number') throw new TypeError('$statuscode is no number');
    Object.setPrototypeOf(out, null);
    return stringify(out);
})
"""
# The text of the body: JavaScript's numbers cannot keep all of JSON's.
_TEXT_NAME = "$intext"
_ERRORS = (quickjs.JSException, quickjs.StackOverflow, MemoryError, UnicodeDecodeError)


def main() -> None:
    os.nice(int(sys.argv[1]))
    limit()
    connection = socket.socket(fileno=sys.stdin.fileno())
    while (request := receive(connection)) is not None:
        if "check" in request:
            send_values(connection, checked(request["check"]), None)
        else:
            answer_all(connection, request)


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (PROCESS_BYTES, PROCESS_BYTES))
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE):
        resource.setrlimit(kind, (0, 0))


def answer_all(connection: socket.socket, request: dict) -> None:  # type: ignore[type-arg]
    """Execute the jobs in order until all are done or `seconds` have passed.

    The last answer is null.
    """
    until = time.monotonic() + request["seconds"]
    for job in request["jobs"]:
        started = time.process_time()
        answer = executed(request["scripts"][job["script"]], job)
        answer["seconds"] = time.process_time() - started
        if job is request["jobs"][-1] or time.monotonic() >= until:
            send_values(connection, answer, None)
            return
        # At once: the next script may end the process.
        send_values(connection, answer)


def executed(script: str, job: dict) -> dict:  # type: ignore[type-arg]
    signal.setitimer(signal.ITIMER_PROF, KILL_SECONDS)
    try:
        context = new_context()
        context.set(
            "$inmessage", context.parse_json(job["message"]) if job["is_json"] else job["message"]
        )
        # A copy of the whole body, which few scripts need.
        if _TEXT_NAME in script:
            context.set(_TEXT_NAME, job["message"])
        context.set("$inheader", context.parse_json(job["headers"]))
        collect = context.eval(_BEGINNING)
        context.set_time_limit(SECONDS)
        context.eval(script + _NO_VALUE)
    except _ERRORS as error:
        signal.setitimer(signal.ITIMER_PROF, 0)
        return described(error)
    try:
        body = collect()
        collected = body or collect(context.eval(_COLLECTOR))
        if len(collected) > LONGEST_OUTPUT:
            return {"error": OUTPUT_TOO_LONG, "line": None, "column": None}
        return {"body": body} if body else {"output": collected}
    except _ERRORS as error:
        # The line numbers are the collector's, not the script's.
        return described(error) | {"line": None, "column": None}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def checked(script: str) -> dict:  # type: ignore[type-arg]
    """Compile a script without executing it."""
    signal.setitimer(signal.ITIMER_PROF, KILL_SECONDS)
    try:
        new_context().eval(_NOT_RUN + script + _NO_VALUE)
    except _ERRORS as error:
        answer = described(error)
        if answer["error"] == "null":
            return {}
        if answer["line"] == 1 and answer["column"] is not None:
            answer["column"] = max(answer["column"] - len(_NOT_RUN), 1)
        return answer
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return {}


def new_context() -> quickjs.Context:
    context = quickjs.Context()
    context.set_memory_limit(MEMORY_BYTES)
    context.set_max_stack_size(STACK_BYTES)
    return context


def described(error: Exception) -> dict:  # type: ignore[type-arg]
    """Return the message and the place of an error.

    A frame of the script has brackets, or is the only frame; other frames are of code parsed by it.
    """
    if isinstance(error, MemoryError):
        return {"error": "out of memory", "line": None, "column": None}
    text, _, stack = str(error).partition("\n    at ")
    frames = [frame.strip() for frame in stack.split("\n") if "<input>:" in frame]
    frame = next((frame for frame in frames if "(" in frame), frames[0] if frames else "")
    place = frame.partition("<input>:")[2].rstrip(")").split(":")
    line, column = (int(place[0]), int(place[1])) if len(place) > 1 else (None, None)
    text = text.removesuffix("\nundefined").strip()
    if len(text) > LONGEST_ERROR:
        text = f"{text[:LONGEST_ERROR]}…"
    return {"error": text, "line": line, "column": column}


def receive(connection: socket.socket) -> "dict | None":  # type: ignore[type-arg]
    head = read_exactly(connection, LENGTH.size)
    return (
        None
        if head is None
        else json.loads(read_exactly(connection, LENGTH.unpack(head)[0]) or b"null")
    )


def read_exactly(connection: socket.socket, size: int) -> "bytes | None":
    """Read exactly `size` bytes; None if the other side has closed the connection."""
    parts, missing = [], size
    while missing:
        part = connection.recv(min(missing, 1 << 20))
        if not part:
            return None
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def send_values(connection: socket.socket, *answers: object) -> None:
    texts = [json.dumps(answer).encode() for answer in answers]
    connection.sendall(b"".join(LENGTH.pack(len(text)) + text for text in texts))


if __name__ == "__main__":
    main()
