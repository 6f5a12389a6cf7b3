"""Random messages: JSON in every spelling, and texts that only resemble it."""

import json
from typing import TypeAlias

from hypothesis import strategies as st

Message: TypeAlias = tuple[dict[str, str], bytes]

NAMES = ["a", "b", "id", "é", "𝒳", "", "0", "A b", "it's", '"', "%s"]
HEADERS = ["priority", "filter-string", "x-é"]
WORDS = [
    *NAMES,
    *[
        "low",
        "Low",
        "z",
        "a%",
        "a_c",
        "abc",
        "\\",
        "ab\\",
        "\n",
        "\x7f",
        "\ue000",
        "\U0001f600",
        "true",
        "false",
    ],
    *[
        "null",
        "5",
        "-5",
        "5.0",
        "05",
        "5 ",
        "+5",
        "1e2",
        "1E400",
        "1e9999",
        "1e10000",
        "-0",
        ".5",
        "NaN",
        "٣",
    ],
    *[
        "{}",
        "[]",
        '{"a": 1}',
        "[1, 2]",
        '"a"',
        "1" * 1000,
        "1" * 1001,
        "-" + "1" * 999,
        "-" + "1" * 1000,
    ],
]
# Moments, and texts that only resemble them.
MOMENTS = [
    *[
        "2022-12-11T16:00:00.000-0800",
        "2022-12-12T00:00:00Z",
        "2022-12-12T00:30:00.000+0100",
        "2022-12-11T16:00:00:000-08:00",
        "2022-12-12T05:30:00.000000999+0530",
        "2022-12-12T00:00:00.000001Z",
        "2000-02-29T23:59:59+14:59",
        "1000-01-01T00:00:00+1459",
        "2999-12-31T23:59:59.999999-1459",
    ],
    *[
        "1900-02-29T00:00:00Z",
        "2022-02-30T00:00:00Z",
        "2022-06-31T00:00:00Z",
        "2022-12-12T24:00:00Z",
        "2022-12-12T00:00:60Z",
        "2022-12-12T00:00:00",
        "2022-12-12T00:00:00 Z",
        "2022-12-12 00:00:00Z",
        "2022-12-12T00:00:00.Z",
        "2022-12-12T00:00:00.0000000000Z",
        "2022-12-12T00:00:00+15:00",
        "2022-12-12T00:00:00+1:00",
        "0999-12-12T00:00:00Z",
        "3000-01-01T00:00:00Z",
        "2022-12-12T00:00:00Z\n",
        "2022-12-12",
        "\uff12022-12-12T00:00:00Z",
    ],
]
NUMBERS = [
    *[
        "0",
        "-0",
        "-0.0",
        "1",
        "1.0",
        "5",
        "-5",
        "5.0",
        "5.50",
        "1e2",
        "1E+2",
        "1.5e1",
        "1e-7",
        "0e5",
        "0.00e-3",
    ],
    *[
        "0.1",
        "100",
        "1e400",
        "1e1000",
        "-1e999",
        "1e-400",
        "12345678901234567890",
        "9007199254740993",
    ],
    *[
        "9" * 18,
        "1" + "0" * 18,
        "9" * 1000,
        "-" + "9" * 1000,
        "9" * 4500,
        "1e131071",
        "1e-16383",
        "0e1073741823",
    ],
]
# Texts that JSON or jsonb refuses, and texts that they only seem to refuse.
ODDITIES = [
    *[
        "1e131072",
        "1e-16384",
        "0e-16384",
        "0e1073741824",
        "1e99999999999999999999",
        "0e" + "0" * 5000 + "1",
    ],
    *[
        "NaN",
        "Infinity",
        "-Infinity",
        "-",
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "٣",
        "nul",
        "True",
        "'a'",
        '"\\x"',
        '"\\ud8"',
    ],
    *[
        '"\\u0000"',
        '"\\ud83d"',
        '"\\ude00"',
        '"\\ude00\\ud83d"',
        '"\\ud83d\\u0061"',
        '"\\ud83d\\ud83d\\ude00"',
    ],
    *[
        '"\\ud83d\\ude00"',
        '"\\uD83D\\uDE00"',
        '"\\\\u0000"',
        '"\\\\\\u0000"',
        '"\\\\ud83d"',
        '"\\u0001"',
        '"\t"',
    ],
    *[
        '"\x7f"',
        '"\x00"',
        '{"\\u0000": 1}',
        '{"a": 1,}',
        '{"a" 1}',
        "[1,]",
        "[",
        "{",
        '"',
        "",
        " ",
        "1 2",
        "{1: 2}",
    ],
    *[
        "[" * 100 + "]" * 100,
        "[" * 100 + "1" + "]" * 100,
        "[" * 101 + "1" + "]" * 101,
        "[" * 101 + "]" * 101,
    ],
    *[
        "[" * 102 + "]" * 102,
        '{"a":' * 101 + "[]" + "}" * 101,
        "[[]," * 60 + "[]" + "]" * 60,
        "[" * 50_000,
    ],
    *[
        "[" * 1500 + "]" * 1500,
        "[" * 50_000 + "]" * 50_000,
        "\ufeff1",
        "\u00a01",
        "1\u2003",
        "/**/1",
        '"\\/"',
    ],
]

# Numbers of few bytes and many characters: these are below, above or seemingly above the bound up
# to which bodies are read.
GROWING = [
    *[
        "[" + ",".join([number] * count) + "]"
        for number in ("1e131071", "-1e131071")
        for count in (7, 8)
    ],
    *["[" + ",".join(["1e-16383"] * count) + "]" for count in (60, 61, 62)],
    '{"a": [' + ",".join(["1e131071"] * 8) + '], "a": 1}',
    '{"a": 1, "b": [' + ",".join(["1E99"] * 20_000) + "]}",
    *["[" + "1e999, " * 1000 + f"1e{end}]" for end in range(6_990, 7_020)],
]

_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
_words = st.sampled_from(WORDS) | st.sampled_from(MOMENTS) | _text
_spaces = st.sampled_from(["", "", " ", "\n\t", "\r"])
_digits = st.from_regex(r"\A-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,10})?([eE][+-]?[0-9]{1,3})?\Z")


@st.composite
def _quoted(draw: st.DrawFn, words: st.SearchStrategy[str]) -> str:
    return json.dumps(draw(words), ensure_ascii=draw(st.booleans()))


@st.composite
def _array(draw: st.DrawFn, items: st.SearchStrategy[str]) -> str:
    space = draw(_spaces)
    return f"[{space}" + f"{space},".join(draw(st.lists(items, max_size=4))) + "]"


@st.composite
def _object(draw: st.DrawFn, items: st.SearchStrategy[str]) -> str:
    names = _quoted(st.sampled_from(NAMES) | _text)
    members = draw(st.lists(st.tuples(names, _spaces, items), max_size=5))
    return "{" + ",".join(f"{name}{space}:{space}{item}" for name, space, item in members) + "}"


_scalars = (
    st.sampled_from(["null", "true", "false"])
    | st.sampled_from(NUMBERS)
    | _digits
    | _quoted(_words)
)
json_texts = st.recursive(
    _scalars, lambda items: _array(items) | _object(items) | _object(items), max_leaves=12
)


@st.composite
def _records(draw: st.DrawFn) -> str:
    """Draw records with the same names, so that one filter finds a value in every message."""
    a, b, c, d, e = [draw(_scalars) for _ in range(5)]
    odd = draw(json_texts)
    return (
        f'{{"a": {a}, "b": {draw(st.sampled_from([a, b, odd]))}, "c": {{"a": {c}, "n": 1}}, '
        f'"d": [{d}, {e}]}}'
    )


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    whole = draw(json_texts).encode()
    at = draw(st.integers(0, len(whole)))
    return whole[:at] + draw(st.binary(max_size=3)) + whole[at + draw(st.integers(0, 2)) :]


_encoded = json_texts.map(str.encode)
bodies = st.one_of(
    *[_records().map(str.encode)] * 9,
    *[_encoded] * 5,
    _damaged(),
    st.binary(max_size=20),
    st.sampled_from(ODDITIES).map(str.encode),
    _object(st.sampled_from(ODDITIES)).map(str.encode),
)
headers = st.dictionaries(st.sampled_from(HEADERS), _words, max_size=3)
messages = st.tuples(headers, bodies)
