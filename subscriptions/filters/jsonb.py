"""PostgreSQL's jsonb in Python: accepted input, printing, steps and comparison.

Numbers are int or Decimal, so they print as they came in. MISSING is SQL's null; None is JSON's
null.
"""

import json
import re
from collections.abc import Callable
from decimal import Decimal
from enum import Enum, auto
from json.encoder import encode_basestring
from typing import Any, Final, TypeAlias, cast

Json: TypeAlias = bool | int | Decimal | str | list["Json"] | dict[str, "Json"] | None

# Deeper bodies count as not JSON. PostgreSQL's own limit follows from a server setting and Python's
# from the depth of the caller, so neither can be relied on.
MAX_DEPTH: Final = 100


class Missing(Enum):
    MISSING = auto()


MISSING: Final = Missing.MISSING

# The characters by which a body's numbers, written out, may exceed the bytes of the body. 1e131071
# is eight bytes and 131,072 characters, so without a limit a publisher could make a small body take
# gigabytes as text.
MAX_GROWTH: Final = 1_000_000

# From the source of PostgreSQL's numeric: digits before the point are counted in groups of four, in
# 16 bits; digits after it in 14; exponents up to INT_MAX / 2.
_MAX_ADJUSTED = 4 * 32768 - 1
_MAX_SCALE = 16383
_MAX_EXPONENT = 2**30 - 1
_CERTAINLY_FITS = 1000
# The lowest possible setting of Python's limit on converting text to int.
_INT_DIGITS = 640


def parse_jsonb(body: bytes) -> Json | Missing:
    """Return the value in jsonb.

    MISSING if jsonb would refuse it or the text is too long.
    """
    numbers = _Numbers()
    try:
        text = body.decode()
        value = _decoded(text, numbers)
    except (ValueError, RecursionError):
        return MISSING
    if ("\\u" in text and _has_refused_escape(text)) or _is_too_deep(text, value):
        return MISSING
    # The value may be smaller than the text, because the last of several equal names wins.
    if numbers.growth > MAX_GROWTH and _digits_in(value) > len(body) + MAX_GROWTH:
        return MISSING
    return value


class _Numbers:
    """Converts the numbers of a body, and counts how much longer they are when written out."""

    def __init__(self) -> None:
        self.growth = 0

    def decimal(self, digits: str) -> Decimal:
        number = _decimal(digits)
        if "e" in digits or "E" in digits:
            self.growth += max(_length(number) - len(digits), 0)
        return number

    def integer(self, digits: str) -> int | Decimal:
        return int(digits) if len(digits) < _INT_DIGITS else _decimal(digits)


def _decoded(text: str, numbers: _Numbers) -> Json:
    try:
        decoder = json.JSONDecoder(parse_float=numbers.decimal, parse_constant=_constant)
        return cast("Json", decoder.decode(text))
    except json.JSONDecodeError:
        raise
    except ValueError:
        # A number with more digits than int accepts: rare, so this slower decoder runs only then.
        decoder = json.JSONDecoder(
            parse_int=numbers.integer, parse_float=numbers.decimal, parse_constant=_constant
        )
        return cast("Json", decoder.decode(text))


def _length(number: int | Decimal) -> int:
    """Return the number of characters of the number in print."""
    if type(number) is int:
        return len(str(number))
    sign, digits, exponent = cast("Decimal", number).as_tuple()
    scale = max(-cast("int", exponent), 0)
    before = max(len(digits) + cast("int", exponent), 1) if number else 1
    return sign + before + (1 + scale if scale else 0)


def _digits_in(value: Json) -> int:
    match value:
        case dict():
            return sum(map(_digits_in, value.values()))
        case list():
            return sum(map(_digits_in, value))
        case bool() | str() | None:
            return 0
        case number:
            return _length(number)


def _decimal(digits: str) -> Decimal:
    if len(digits) > _CERTAINLY_FITS or "e" in digits or "E" in digits:
        _check_range(digits)
    number = Decimal(digits)
    return number or number.copy_abs()


def _check_range(digits: str) -> None:
    exponent = digits.lower().partition("e")[2].lstrip("+-0")
    if len(exponent) > 10 or int(exponent or 0) > _MAX_EXPONENT:
        raise ValueError("exponent out of range")
    number = Decimal(digits)
    scale = -int(number.as_tuple().exponent)
    if scale > _MAX_SCALE or (number and number.adjusted() > _MAX_ADJUSTED):
        raise ValueError("number out of range")


def _constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


_SURROGATE_PAIR = r"u[dD][89abAB]..\\u[dD][c-fC-F].."
_ESCAPE = re.compile(rf"\\(?:{_SURROGATE_PAIR}|(u0000|u[dD][89a-fA-F]..)|.)")


def _has_refused_escape(text: str) -> bool:
    """Return whether the text escapes NUL or half a surrogate pair."""
    return any(escape[1] for escape in _ESCAPE.finditer(text))


def _is_too_deep(text: str, value: Json) -> bool:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [child for parent in level for child in _children(parent)]
    return bool(level)


def _children(value: Any) -> Any:
    if type(value) is dict:
        return value.values()
    return value if type(value) is list else ()


def text_of(value: Json | Missing) -> str | None:
    """Return the text of `->>`: strings bare, everything else as jsonb prints it."""
    if type(value) is str:
        return value
    if value is None or value is MISSING:
        return None
    return printed_text(value)


def printed_text(value: Json) -> str:
    match value:
        case str():
            return encode_basestring(value)
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case dict():
            members = sorted(value.items(), key=_storage_order)
            return (
                "{"
                + ", ".join(
                    [f"{encode_basestring(key)}: {printed_text(member)}" for key, member in members]
                )
                + "}"
            )
        case list():
            return "[" + ", ".join([printed_text(item) for item in value]) + "]"
        case int():
            return str(value)
        case Decimal():
            return format(value, "f")


def canonical_text(value: Json) -> str:
    """Return a text, the same for values that are `is_equal`, and for no others."""
    return printed_text(_without_idle_zeros(value))


def _without_idle_zeros(value: Json) -> Json:
    match value:
        case Decimal():
            digits = format(value, "f")
            return Decimal(digits.rstrip("0").rstrip(".")) if "." in digits else value
        case list():
            return [_without_idle_zeros(item) for item in value]
        case dict():
            return {key: _without_idle_zeros(member) for key, member in value.items()}
        case _:
            return value


def _storage_order(member: tuple[str, Json]) -> tuple[int, bytes]:
    key = member[0].encode()
    return len(key), key


def element(value: Json | Missing, index: int) -> Json | Missing:
    if type(value) is list:
        return value[index] if -len(value) <= index < len(value) else MISSING
    # jsonb stores a scalar as an array of one element, and the operators expose it.
    return MISSING if type(value) is dict or index not in (0, -1) else value


def has_key(value: Json, key: str) -> bool:
    match value:
        case dict():
            return key in value
        case list():
            return any(type(item) is str and item == key for item in value)
        case _:
            return type(value) is str and value == key


def containment_test(text: str) -> Callable[[Json], bool]:
    """Return a test whether a value contains the value of a JSON text, which must be valid."""
    inner = parse_jsonb(text.encode())
    assert not isinstance(inner, Missing)
    return lambda value: contains(value, inner)


def contains(value: Json, inner: Json) -> bool:
    """Return whether `value @> inner`: an array may contain a scalar as an element."""
    if type(value) is list and type(inner) not in (list, dict):
        return _has_element(value, inner)
    return _contains(value, inner)


def _contains(value: Json, inner: Json) -> bool:
    if type(value) is dict and type(inner) is dict:
        return all(name in value and _contains(value[name], part) for name, part in inner.items())
    if type(value) is list and type(inner) is list:
        return all(_has_element(value, part) for part in inner)
    return type(inner) not in (list, dict) and is_equal(value, inner)


def _has_element(array: list[Json], part: Json) -> bool:
    return any(_contains(element, part) for element in array)


def is_equal(left: Json, right: Json) -> bool:
    if type(left) is bool or type(right) is bool:
        return left is right
    if type(left) is list and type(right) is list:
        return len(left) == len(right) and all(map(is_equal, left, right))
    if type(left) is dict and type(right) is dict:
        return left.keys() == right.keys() and all(
            is_equal(part, right[key]) for key, part in left.items()
        )
    return left == right
