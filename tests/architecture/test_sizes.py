"""The sizes of functions, files and packages, in total and at most."""

import ast
import statistics

from tests.architecture.source import Function, Module, production, suite

FILE_LINES = 300
FUNCTION_LINES = 50
PARAMETERS = 5
MEDIAN_LINES = 8
NINETIETH_LINES = 25


def lines(function: Function) -> int:
    """Return the lines of a function without its docstring: explaining costs nothing."""
    assert function.end_lineno is not None
    docstring = function.body[0] if ast.get_docstring(function) else None
    explained = 0
    if docstring is not None and docstring.end_lineno is not None:
        explained = docstring.end_lineno - docstring.lineno + 1
    return function.end_lineno - function.lineno + 1 - explained


def required(function: Function) -> int:
    """Return the number of parameters that every caller has to pass."""
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    named = positional[: len(positional) - len(given.defaults)]
    named += [
        argument
        for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
        if not default
    ]
    return len([argument for argument in named if argument.arg not in {"self", "cls"}])


def too_long(modules: list[Module]) -> list[str]:
    return [
        f"{module.place(function)} {function.name}"
        for module in modules
        for function in module.functions
        if lines(function) > FUNCTION_LINES
    ]


def test_no_file_is_longer_than_300_lines() -> None:
    modules = [*production(), *suite()]
    assert [module.name for module in modules if module.text.count("\n") > FILE_LINES] == []


def test_no_function_is_longer_than_50_lines() -> None:
    assert too_long([*production(), *suite()]) == []


def test_most_functions_are_short() -> None:
    lengths = [lines(function) for module in production() for function in module.functions]
    assert statistics.median(lengths) <= MEDIAN_LINES
    assert statistics.quantiles(lengths, n=10)[-1] <= NINETIETH_LINES


def test_no_function_requires_more_than_5_parameters() -> None:
    crowded = [
        f"{module.place(function)} {function.name}"
        for module in production()
        for function in module.functions
        if required(function) > PARAMETERS
    ]
    assert crowded == []
