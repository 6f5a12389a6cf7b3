"""A script cannot affect the process that executes it, or later scripts."""

import fcntl
import os
import signal
import sys
import termios
import time
from collections.abc import Iterator

import pytest

from subscriptions.checks.script import fault
from subscriptions.scripts.includes import Library
from subscriptions.scripts.jobs import Job, Output, ScriptFault
from subscriptions.scripts.pool import ScriptPool
from subscriptions.scripts.worker import Worker, WorkerDiedError
from tests.unit.subscriptions.script_runs import job, made, run


@pytest.fixture(scope="module")
def pool() -> Iterator[ScriptPool]:
    pool = ScriptPool()
    yield pool
    pool.close()


@pytest.mark.parametrize(
    ("script", "body"),
    [
        ("", None),
        ("$outmessage = 'text';", b"text"),
        ("$outmessage = '';", b""),
        ("$outmessage = {a: [1, 'ü', null]};", '{"a":[1,"ü",null]}'.encode()),
        ("$outmessage = null;", b"null"),
        ("$outmessage = $inmessage;", b'{"id":"artf1"}'),
        ("var $outmessage = 'var';", b"var"),
        ("let $outmessage = 'let';", b"let"),
        ("$outmessage = typeof $outmessage + typeof $param;", b"undefinedundefined"),
        ("$outmessage = $inheader['FILTER_STRING'] + $inheader['filter_string'];", b"proj1proj1"),
        ("$outmessage = Object.keys($inheader).join();", b"filter-string"),
        ("$outmessage = 'last line is a comment'; // so", b"last line is a comment"),
    ],
)
def test_outmessage_is_the_body(pool: ScriptPool, script: str, body: bytes | None) -> None:
    assert made(run(pool, script, {"id": "artf1"}, **{"filter-string": "proj1"})).body == body


def test_intext_is_the_text_of_the_body(pool: ScriptPool) -> None:
    body = '{"big": 9007199254740993, "a": -0, "a": 1.0}'
    script = "$outmessage = $intext.replace('big', 'id' + typeof $inmessage.big);"
    (result,) = pool.run(
        [Job(script=script, message=body, is_json=True, headers="{}")], seconds=0
    ).result()
    assert made(result).body == body.replace("big", "idnumber").encode()
    texts = [
        Job(script="$outmessage = $intext + '.';", message=text, is_json=False, headers="{}")
        for text in ("a", "b")
    ]
    results = pool.run(texts, seconds=10).result()
    assert [made(result_of).body for result_of in results] == [b"a.", b"b."]


def test_a_message_that_is_no_json_is_text(pool: ScriptPool) -> None:
    text = Job(
        script="$outmessage = $inmessage + typeof $inmessage;",
        message="{x",
        is_json=False,
        headers="{}",
    )
    (result,) = pool.run([text], seconds=0).result()
    assert made(result).body == b"{xstring"


SECRET = "4929-1234"


@pytest.mark.parametrize(
    ("script", "shared"),
    [
        ("throw new Error('no such card: ' + $inmessage.card);", "line 1: it threw Error"),
        ("\nthrow $inmessage.card;", "it threw a value"),
        ("throw {toString: function () { return $inmessage.card; }};", "it threw a value"),
        ("var e = new Error('x'); e.name = $inmessage.card; throw e;", "line 1: it threw a value"),
        ("$inmessage.none[$inmessage.card.slice(0, 4)];", "line 1: it threw TypeError"),
        ("throw new TypeError($inmessage.card);", "line 1: it threw TypeError"),
        ("JSON.parse($inmessage.card);", "line 1: it threw SyntaxError"),
        ("$outheader['a b' + $inmessage.card] = 1;", "$outheader has an invalid header"),
        ("$statuscode = 49291234;", "$statuscode must be a whole number from 200 to 599"),
        ("$inmessage.no.such;", "line 1: TypeError: cannot read property 'such' of undefined"),
        ("nothing();", "line 1: ReferenceError: nothing is not defined"),
    ],
)
def test_the_shared_words_of_a_fault_have_nothing_of_the_message(
    pool: ScriptPool, script: str, shared: str
) -> None:
    failed = run(pool, script, {"card": SECRET})
    assert isinstance(failed, ScriptFault)
    assert failed.shared == shared
    assert SECRET not in failed.shared


def test_of_a_thrown_text_of_any_length_four_kilobytes_are_kept(pool: ScriptPool) -> None:
    failed = run(pool, "throw new Error('x'.repeat(3e7));")
    assert isinstance(failed, ScriptFault)
    assert 4000 < len(failed.text) < 5000
    assert failed.text.endswith("…")


def test_param_headers_and_status_are_collected(pool: ScriptPool) -> None:
    result = made(run(pool, "$param = 'a/b é'; $outheader['X-A'] = 7; $statuscode = 404;"))
    assert (result.path, result.headers, result.status_code) == (
        "/a%2Fb%20%C3%A9",
        {"X-A": "7"},
        404,
    )


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("\n\n  $inmessage.a.b;", "line 3: TypeError: cannot read property 'a' of null"),
        ("\nthrow new Error('no');", "line 2: Error: no"),
        ("throw 'no';", "no"),
        ("\nJSON.parse('{');", "line 2: SyntaxError: "),
        ("while (true) {}", "line 1: stopped after 500 ms of processor time"),
        (
            "try { while (true) {} } catch (e) {}",
            "line 1: stopped after 500 ms of processor time",
        ),
        ("new Array(4e8).join('abc');", "stopped after 500 ms of processor time"),
        ("'x'.repeat(1e9);", "line 1: it needs more than 64 MB of memory"),
        (
            "for (var all = [];;) all.push(new Array(1000));",
            "line 1: it needs more than 64 MB of memory",
        ),
        (
            "function deeper() { deeper(); }\ndeeper();",
            "line 1: RangeError: Maximum call stack size",
        ),
        ("$outmessage = 'x'.repeat(5e6);", "its output is longer than 4 MiB"),
        (
            "$outmessage = function () {};",
            "TypeError: $outmessage is neither text nor JSON",
        ),
        (
            "$outmessage = []; $outmessage[0] = $outmessage;",
            "TypeError: circular reference",
        ),
        ("$outmessage = '\\ud800';", "its output holds half a character"),
        ("$outmessage = 1n;", "TypeError: "),
        (
            "$outheader = {'webhook-id': '1'};",
            "$outheader: webhook-id is set by Inturn itself",
        ),
        (
            "$outheader = {'X-A': 'a\\r\\nX-B: b'};",
            "$outheader: The value of X-A holds a line break",
        ),
        ("$outheader = 7;", "TypeError: $outheader is no object"),
        ("$param = '..';", "$param is part of a path"),
        ("$param = 'x'.repeat(2000);", "$param is part of a path"),
        ("$statuscode = 199;", "$statuscode is 199"),
        ("$statuscode = 'OK';", "TypeError: $statuscode is no number"),
        ("require('fs');", "line 1: ReferenceError: require is not defined"),
        ("std.open('/etc/passwd');", "line 1: ReferenceError: std is not defined"),
        ("fetch('http://127.0.0.1/');", "line 1: ReferenceError: fetch is not defined"),
    ],
)
def test_what_a_script_cannot_do_is_its_fault_and_the_next_one_is_executed(
    pool: ScriptPool, script: str, said: str
) -> None:
    failed = run(pool, script)
    assert isinstance(failed, ScriptFault)
    assert str(failed).startswith(said)
    assert made(run(pool, "$outmessage = 'well';")).body == b"well"


def test_a_script_finds_nothing_of_what_another_left(pool: ScriptPool) -> None:
    polluting = job(
        "Object.prototype.evil = 1; Array.prototype.push = null; JSON.stringify = null; left = 1;"
        "String = Object.keys = null; Object.prototype.toJSON = function () { return 'evil'; };"
    )
    looking = job(
        "$outmessage = [typeof {}.evil, typeof [].push, typeof JSON.stringify, typeof left].join();"
    )
    first, second = pool.run([polluting, looking], seconds=60).result()
    assert made(first).body is None
    assert made(second).body == b"undefined,function,function,undefined"


def test_a_batch_ends_when_it_took_long_enough(pool: ScriptPool) -> None:
    results = pool.run([job("$outmessage = 1;")] * 1000, seconds=0.02).result()
    assert 1 <= len(results) < 1000


def test_a_slow_script_is_executed_apart_until_it_is_quick_again(pool: ScriptPool) -> None:
    script = "(function () { for (var i = 0; i < ($inmessage ? 7e6 : 0); i++) {} })();"
    slow, quick = job(script, True), job(script, False)
    assert isinstance(pool.run([slow], seconds=0).result()[0], Output)
    assert len(pool.run([quick, quick], seconds=60).result()) == 1
    assert len(pool.run([quick, quick], seconds=60).result()) == 2


def test_a_process_that_is_killed_is_replaced_and_the_script_executed_again(
    pool: ScriptPool,
) -> None:
    for worker in pool.workers:
        if worker.process_id is not None:
            os.kill(worker.process_id, signal.SIGKILL)
    assert made(run(pool, "$outmessage = 'again';")).body == b"again"


@pytest.mark.parametrize(
    ("most_deaths", "said"), [(2, "again"), (1, "the process that executed it ended twice")]
)
def test_a_process_that_is_killed_with_a_script_in_it_costs_the_script_a_second_run_at_most(
    pool: ScriptPool, monkeypatch: pytest.MonkeyPatch, most_deaths: int, said: str
) -> None:
    monkeypatch.setattr("subscriptions.scripts.pool.MOST_DEATHS", most_deaths)
    run(pool, "")
    processes = [worker.process_id for worker in pool.workers if worker.process_id is not None]
    for process_id in processes:
        os.kill(process_id, signal.SIGSTOP)
    future = pool.run([job("$outmessage = 'again';")], seconds=0)
    # A process that is killed before it has the request is just replaced.
    while not any(has_unread_request(worker) for worker in pool.workers):
        time.sleep(0.001)
    for process_id in processes:
        os.kill(process_id, signal.SIGKILL)
    (result,) = future.result()
    assert (
        (result.body or b"").decode() == said if isinstance(result, Output) else said in result.text
    )


def has_unread_request(worker: Worker) -> bool:
    assert worker._socket is not None
    unread = fcntl.ioctl(worker._socket, termios.TIOCOUTQ, bytes(4))
    return int.from_bytes(unread, sys.byteorder) > 0


def test_the_process_has_no_environment_and_ends_with_its_socket() -> None:
    worker = Worker(niceness=0)
    request = {
        "seconds": 0,
        "scripts": [""],
        "jobs": [{"script": 0, "message": "1", "is_json": True, "headers": "{}"}],
    }
    assert len(list(worker.answers(request))) == 1
    assert worker.process_id is not None
    with open(f"/proc/{worker.process_id}/environ", "rb") as environment:  # noqa: PTH123
        assert environment.read() == b""
    assert worker.end() == 0


def test_the_end_of_a_process_is_reported() -> None:
    worker = Worker(niceness=0)
    request = {
        "seconds": 0,
        "scripts": ["new Array(4e8).join('abc');"],
        "jobs": [{"script": 0, "message": "1", "is_json": True, "headers": "{}"}],
    }
    with pytest.raises(WorkerDiedError) as died:
        list(worker.answers(request))
    assert died.value.is_runaway


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("", None),
        ("var a = 1;", None),
        ("while (true) {}", None),
        ("throw null;", None),
        ("var = 1;", ("line 1: SyntaxError: variable name expected", 5)),
        ("var a = 1;\n  var = 1;", ("line 2: SyntaxError: variable name expected", 7)),
        ("return 1;", ("line 1: SyntaxError: return not in a function", None)),
        ("(" * 50_000, ("RangeError: Maximum call stack size exceeded", None)),
        (
            "//" + "x" * 100_000,
            ("it has more than 100000 bytes; write a shorter one", None),
        ),
    ],
)
def test_a_script_is_compiled_without_being_executed(
    script: str, said: tuple[str, int | None] | None
) -> None:
    found = fault(script, common=Library())
    if said is None:
        assert found is None
    else:
        assert found is not None
        assert str(found) == said[0]
        assert said[1] in (None, found.column)
