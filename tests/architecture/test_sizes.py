"""The sizes of functions. A file is as long as its one subject needs."""

import ast
import statistics

from tests.architecture.source import Function, Module, production, suite

FUNCTION_LINES = 60
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


def too_long(module: Module, functions: list[Function]) -> list[str]:
    return [
        f"{module.place(function)} {function.name}"
        for function in functions
        if lines(function) > FUNCTION_LINES
    ]


def test_functions_are_short_and_require_at_most_5_parameters() -> None:
    crowded, long, lengths = [], [], []
    # Each module is parsed once: that takes most of the time.
    for module in production():
        functions = module.functions
        long += too_long(module, functions)
        lengths += [lines(function) for function in functions]
        crowded += [
            f"{module.place(function)} {function.name}"
            for function in functions
            if required(function) > PARAMETERS
        ]
    assert crowded == []
    assert long == []
    assert statistics.median(lengths) <= MEDIAN_LINES
    assert statistics.quantiles(lengths, n=10)[-1] <= NINETIETH_LINES


def test_no_function_of_the_tests_is_longer_than_60_lines() -> None:
    assert [place for module in suite() for place in too_long(module, module.functions)] == []
