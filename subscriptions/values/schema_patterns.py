"""The patterns of JSON Schema: regular expressions of ECMA-262, searched in linear time.

Python's `re` backtracks: given `^(a+)+$` and thirty letters, it does not return. The engine of
`jsonschema-rs` follows all alternatives at once, so it has no look-around and no back-references.
It holds the interpreter lock while it searches, and nothing can abort it.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from jsonschema_rs import Draft202012Validator, FancyRegexOptions, RegexOptions

MAX_PATTERN_LENGTH = 10_000
# Bytes of a compiled pattern. `.{1,900}` has about 1 MB, because `.` is any character of Unicode.
_SIZES = [2**exponent for exponent in range(10, 21)]
# Bytes of the pattern times characters of the text. At worst, for `[ab]*a[ab]{1000}c` and a random
# text, this takes about a second; nearly all searches take a thousandth of it.
_MAX_WORK = 2 * 10**10


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


@lru_cache(maxsize=500)
def schema_pattern(pattern: str) -> SchemaPattern:
    """Return the compiled pattern; raises PatternError."""
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise PatternError(f"it is longer than {MAX_PATTERN_LENGTH} characters")
    for size in _SIZES:
        with suppress(ValueError):
            return SchemaPattern(_compiled(pattern, RegexOptions(size)), _MAX_WORK // size)
    raise PatternError(_why_refused(pattern))


def _compiled(pattern: str, options: RegexOptions | FancyRegexOptions) -> Draft202012Validator:
    return Draft202012Validator({"pattern": pattern}, pattern_options=options, offline=True)


def _why_refused(pattern: str) -> str:
    with suppress(ValueError):
        _compiled(pattern, RegexOptions())
        return "it is too large; make it shorter, or its {n} smaller"
    with suppress(ValueError):
        _compiled(pattern, FancyRegexOptions())
        return "look-around and back-references are not supported; write it without them"
    return "it is no regular expression of ECMA-262, as JSON Schema has them, or is nested too deep"
