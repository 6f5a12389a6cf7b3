"""The patterns of JSON Schema: close to ECMA-262, as `jsonschema-rs` reads it, in linear time.

Python's `re` backtracks: given `^(a+)+$` and thirty letters, it does not return. The engine of
`jsonschema-rs` follows all alternatives at once, so it has no look-around and no back-references.
It holds the interpreter lock while it compiles and searches, and nothing can abort it.

The dialect is that of ECMA-262 with flag `u`, without escapes of surrogates, flags in groups and
`--` in brackets. Some patterns are accepted that ECMA-262 refuses, such as `a++`.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from jsonschema_rs import Draft202012Validator, RegexOptions

MAX_PATTERN_LENGTH = 10_000
# Bytes of a compiled pattern. `.{1,1900}` has 2.6 MB, because `.` is any character of Unicode.
_SIZES = [round(2 ** (quarters / 4)) for quarters in range(40, 93)]
# Most patterns of the greatest length have fewer bytes, as long as they do not repeat.
_SIZE_WITHOUT_COUNTS = 2**25
# Characters of the text times bytes of the pattern, and some more bytes for the least work per
# character. The worst search found, of `(?:a?){5000}[cd]` in many `a`, took 0.9 s of processor
# time; nearly all searches take a thousandth of that.
_MAX_WORK = 10**10
_LEAST_BYTES = 5_000


class PatternError(ValueError):
    """The pattern cannot be searched; the message says why."""


@dataclass(frozen=True, slots=True)
class SchemaPattern:
    """`max_text_length`: a search of a longer text may take more than a second."""

    validator: Draft202012Validator
    max_text_length: int

    def is_found_in(self, text: str) -> bool:
        """Return whether any part of the text matches; the text has no lone surrogates."""
        return self.validator.is_valid(text)


def schema_pattern(pattern: str) -> SchemaPattern:
    """Return the compiled pattern; raises PatternError."""
    compiled = _pattern_or_refusal(pattern)
    if isinstance(compiled, str):
        raise PatternError(compiled)
    return compiled


@lru_cache(maxsize=500)
def _pattern_or_refusal(pattern: str) -> SchemaPattern | str:
    if len(pattern) > MAX_PATTERN_LENGTH:
        return f"it is longer than {MAX_PATTERN_LENGTH} characters"
    try:
        translated = _translated(pattern)
    except PatternError as error:
        return str(error)
    validator = _compiled(translated, _SIZES[-1])
    if validator is None:
        return _why_not_compiled(translated)
    too_small, enough = -1, len(_SIZES) - 1
    while enough - too_small > 1:
        middle = (too_small + enough) // 2
        smaller = _compiled(translated, _SIZES[middle])
        if smaller is None:
            too_small = middle
        else:
            validator, enough = smaller, middle
    return SchemaPattern(validator, _MAX_WORK // (_LEAST_BYTES + _SIZES[enough]))


def _compiled(translated: str, size: int) -> Draft202012Validator | None:
    with suppress(ValueError):
        return Draft202012Validator(
            {"pattern": translated}, pattern_options=RegexOptions(size), offline=True
        )
    return None


def _why_not_compiled(translated: str) -> str:
    if _compiled(_COUNTS.sub(_without_count, translated), _SIZE_WITHOUT_COUNTS):
        return "it is too large; make it shorter, or its {n} smaller"
    return "its syntax is not supported here, or it is nested too deep, or too large"


# Escapes and brackets are matched so that no count is found within them.
_COUNTS = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]?|\{([0-9]{1,9})(?:,([0-9]{0,9}))?\}", re.DOTALL)


def _without_count(match: re.Match[str]) -> str:
    least, most = match[1], match[2]
    is_count = least is not None and (not most or int(least) <= int(most))
    return "{1}" if is_count else match[0]


# The library translates an escape in brackets in linear time, but the same escape outside of
# brackets, and `\c` everywhere, in quadratic time: minutes for the longest pattern.
_TOKENS = re.compile(
    r"""
    \[ (?:\\.|[^\]\\])* \]?
    | (?P<unsupported> \\[1-9] | \\k | \(\?<?[=!] )
    | (?P<flags> \(\?(?![:<])[!-~]? )
    | (?P<unknown> \\[AUaz] )
    | \\c[A-Za-z] | \\0(?![0-9]) | \\. | \.
    """,
    re.DOTALL | re.VERBOSE,
)
_IN_BRACKETS = re.compile(r"\\c[A-Za-z]|\\0(?![0-9])|\\.|[\[&~]", re.DOTALL)
_OUTSIDE = {
    **{rf"\{letter}": rf"[\{letter}]" for letter in "dDsSwW"},
    r"\b": r"(?-u:\b)",
    r"\B": r"(?-u:\B)",
    r"\<": "<",
    r"\>": ">",
    r"\0": r"\x00",
    ".": r"[^\n\r\u2028\u2029]",
    "[]": r"[^\s\S]",
    "[^]": r"[\s\S]",
}
_INSIDE = {r"\b": r"\x08", r"\0": r"\x00", "[": r"\[", "&": r"\&", "~": r"\~"}


def _translated(pattern: str) -> str:
    """Return the pattern in the library's words, which it reads soon, with the same meaning.

    Raises PatternError.
    """
    return _TOKENS.sub(_outside, pattern)


def _outside(match: re.Match[str]) -> str:
    token = match[0]
    if match["unsupported"]:
        raise PatternError(
            "look-around and back-references are not supported; write it without them"
        )
    if match["flags"] or match["unknown"]:
        raise PatternError(f"its {token} is not supported here")
    if token in _OUTSIDE:
        return _OUTSIDE[token]
    if token[0] == "[":
        return "[" + _IN_BRACKETS.sub(_inside, token[1:])
    return _control(token)


def _inside(match: re.Match[str]) -> str:
    return _INSIDE.get(match[0]) or _control(match[0])


def _control(token: str) -> str:
    return rf"\x{ord(token[2]) % 32:02x}" if len(token) == 3 and token[1] == "c" else token
