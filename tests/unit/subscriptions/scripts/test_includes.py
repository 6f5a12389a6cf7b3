"""Common scripts inlined into a script: replaced lines, refused scripts, places of errors."""

import pytest

from subscriptions.scripts import includes
from subscriptions.scripts.includes import (
    Library,
    include_fault,
    included_names,
    inlined_script,
    located_line,
)
from subscriptions.scripts.jobs import Job, Output, ScriptFault
from subscriptions.scripts.pool import ScriptResult, pool

DATES = "function day(text) {\n    return text.slice(0, 10);\n}"
LIBRARY = Library(
    {"dates": DATES, "both": "$include$dates\nvar both = 1;", "setup": "var region = 'eu';"}
)


def run(script: str, library: Library = LIBRARY) -> ScriptResult:
    job = Job(
        script=inlined_script(script, library),
        message='{"at": "2026-11-25T12:00"}',
        is_json=True,
        headers="{}",
    )
    return pool().run([job], seconds=0).result()[0]


def output(script: str, library: Library = LIBRARY) -> str:
    result = run(script, library)
    assert isinstance(result, Output), result
    return (result.body or b"").decode()


@pytest.mark.parametrize("line", ["$include$dates", "  $include$dates;  ", "\t$include$dates"])
def test_an_include_on_a_line_of_its_own_is_replaced(line: str) -> None:
    assert output(f"{line}\n$outmessage = day($inmessage.at);") == "2026-11-25"


def test_a_common_script_includes_others() -> None:
    assert output("$include$both\n$outmessage = day($inmessage.at) + both;") == "2026-11-251"


def test_an_include_inside_a_function_is_replaced_there() -> None:
    script = (
        "function own() {\n$include$dates\nreturn day('2026-01-01T');\n}\n"
        "$outmessage = own() + typeof day;"
    )
    assert output(script) == "2026-01-01undefined"


def test_those_that_run_first_run_in_the_order_of_their_names() -> None:
    library = Library({"b": "order += 'b';", "a": "var order = 'a';"}, first=("b", "a"))
    assert output("$outmessage = order;", library) == "ab"


@pytest.mark.parametrize(
    "script", ["var s = '$include$dates';", "// $include$dates", "x = 1; $include$dates"]
)
def test_an_include_beside_other_code_is_ordinary_code(script: str) -> None:
    assert inlined_script(script, LIBRARY) == script
    assert list(included_names(script)) == []


def test_a_script_without_includes_is_the_very_same() -> None:
    script = "var a;"
    assert inlined_script(script, LIBRARY) is script


@pytest.mark.parametrize(
    ("script", "source", "line"),
    [
        ("\nnone.at;", "", 2),
        ("$include$both\n\nnone.at;", "", 3),
        ("var a;\n$include$fails\nvar b;", "fails", 2),
        ("$include$outer", "fails", 2),
        ("$include$dates\n$include$dates\nday(1);", "dates", 2),
    ],
)
@pytest.mark.parametrize("first", [(), ("setup",)])
def test_an_error_is_located_in_the_script_that_holds_it(
    script: str, source: str, line: int, first: tuple[str, ...]
) -> None:
    library = Library(
        {**LIBRARY.texts, "fails": "var c;\nnone.at;", "outer": "var d;\n\n$include$fails"}
    )
    fault = run(script, Library(library.texts, first=first))
    assert isinstance(fault, ScriptFault)
    assert (fault.source, fault.line) == (source, line)
    assert str(fault).startswith(f"line {line}{f' of {source}' if source else ''}: ")


def test_an_error_of_one_that_runs_first_is_located_there() -> None:
    fault = run("var a;", Library({"setup": "\nnone.at;"}, first=("setup",)))
    assert isinstance(fault, ScriptFault)
    assert (fault.source, fault.line) == ("setup", 2)


def test_comments_that_look_like_marks_do_no_harm() -> None:
    script = "//$end$a\n//$begin$b\n//$end$b\n//$end$c"
    assert [located_line(script, line)[0] for line in range(1, 5)] == ["", "b", "", ""]


def test_an_unknown_name_is_refused_with_its_line() -> None:
    fault = include_fault("var a;\n$include$datez", LIBRARY)
    assert fault is not None
    assert (fault.line, fault.text) == (2, "there is no common script datez; create it first")


@pytest.mark.parametrize(
    ("own", "text", "way"),
    [
        ("a", "$include$a", "a → a"),
        ("dates", "$include$both", "dates → both → dates"),
        ("dates", "var x;\n$include$setup\n$include$both", "dates → both → dates"),
    ],
)
def test_a_common_script_that_includes_itself_is_refused(own: str, text: str, way: str) -> None:
    fault = include_fault(text, LIBRARY, own=own)
    assert fault is not None
    assert fault.text == f"it includes itself: {way}"


def test_a_cycle_that_was_stored_all_the_same_is_a_fault_of_the_script() -> None:
    fault = run("$include$a", Library({"a": "$include$b", "b": "$include$a"}))
    assert isinstance(fault, ScriptFault)
    assert "$include$a" in fault.text


def test_a_common_script_that_is_gone_is_a_fault_with_the_line_of_its_include() -> None:
    fault = run("var a;\n$include$gone", LIBRARY)
    assert isinstance(fault, ScriptFault)
    assert (fault.line, "$include$gone" in fault.text) == (2, True)


def test_scripts_that_double_at_each_level_are_refused() -> None:
    texts = {f"s{n}": f"$include$s{n + 1}\n$include$s{n + 1}" for n in range(18)} | {
        "s18": "var a = 1;" * 100
    }
    fault = include_fault("$include$s0", Library(texts))
    assert fault is not None
    assert "longer than" in fault.text


def test_scripts_that_include_each_other_too_deeply_are_refused() -> None:
    depth = includes.MAX_DEPTH
    texts = {f"s{n}": f"$include$s{n + 1}" for n in range(depth)} | {f"s{depth}": "var a;"}
    fault = include_fault("$include$s0", Library(texts))
    assert fault is not None
    assert "deep" in fault.text
    assert include_fault("$include$s1", Library(texts)) is None
