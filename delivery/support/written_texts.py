r"""The ways in which publishers write a text: a search for `Müller` finds `M\u00fcller` as well.

JSON allows several spellings of a value. Python and PHP escape characters beyond ASCII with small
hexadecimal digits, .NET with large ones; PHP escapes the slash as well; a quotation mark within a
value is always escaped. Between names and values there may be a space.
"""

import json
import re
from itertools import chain

_TYPED_ESCAPE = re.compile(r"(?<!\\)((?:\\u[0-9a-fA-F]{4})+)")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_BESIDE_A_QUOTE = re.compile(r'(?<=")([:,]) ?|([:,]) ?(?=")')
_ESCAPE = re.compile(r"\\u[0-9a-f]{4}")


def ways_to_write(text: str) -> list[bytes]:
    """Return the spellings that the text may have in a body, as bytes, the typed text first.

    A text of ASCII letters and digits has a single spelling. A body with two ways within the text
    is not found. Typed escapes stand for their characters, too.
    """
    plain = _TYPED_ESCAPE.sub(_character, text)
    ways = list(chain.from_iterable(_escaped(form) for form in dict.fromkeys((text, plain))))
    ways += [way.replace("/", "\\/") for way in ways if "/" in way and "\\/" not in way]
    return list(dict.fromkeys(way.encode(errors="replace") for way in ways))


def _escaped(text: str) -> list[str]:
    """Return the text as JSON around values may have it, and as a value has it."""
    around = [_BESIDE_A_QUOTE.sub(rf"\1\2{space}", text) for space in ("", " ")]
    ways = [text, *around]
    ways += [write(way) for way in ways for write in (_ascii, _ascii_with_large_digits)]
    inside = json.dumps(text, ensure_ascii=False)[1:-1]
    return [*ways, *([inside, _ascii(inside)] if inside != text else [])]


def _ascii(text: str) -> str:
    return _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _ascii_with_large_digits(text: str) -> str:
    return _BEYOND_ASCII.sub(lambda found: _with_large_digits(json.dumps(found[0])[1:-1]), text)


def _with_large_digits(escaped: str) -> str:
    return _ESCAPE.sub(lambda found: "\\u" + found[0][2:].upper(), escaped)


def _character(found: re.Match[str]) -> str:
    """Return the characters of typed escapes; half of a pair stays as typed."""
    characters: str = json.loads(f'"{found[1]}"')
    try:
        characters.encode()
    except UnicodeEncodeError:
        return found[1]
    return characters if characters.isprintable() else found[1]
