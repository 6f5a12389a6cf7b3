"""JSON for people: indented, with readable characters, and nothing else changed.

Numbers, the order of names and repeated names stay as the publisher wrote them: the text is
indented token by token rather than parsed and written again.
"""

import json
import re

import orjson

# A longer text is shown as it is: indenting takes a millisecond for every 5 KiB or so.
MOST_CHARACTERS = 96 * 1024
_INDENT = "  "
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_ESCAPES = re.compile(r"(?<!\\)((?:\\\\)*)((?:\\u[0-9a-fA-F]{4})+|\\/)")


def indented(text: str) -> str | None:
    """Return an object or array on several lines; None for any other text, and if it is long."""
    if len(text) > MOST_CHARACTERS or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return "".join(_written(_TOKEN.findall(text)))


def _written(tokens: list[str]) -> list[str]:
    written: list[str] = []
    depth = 0
    for position, token in enumerate(tokens):
        following = tokens[position + 1] if position + 1 < len(tokens) else ""
        match token:
            case "{" | "[":
                depth += 1
                written.append(token if following in ("}", "]") else f"{token}{_line(depth)}")
            case "}" | "]":
                depth -= 1
                is_empty = position > 0 and tokens[position - 1] in ("{", "[")
                written.append(token if is_empty else f"{_line(depth)}{token}")
            case ",":
                written.append(f",{_line(depth)}")
            case ":":
                written.append(": ")
            case _:
                written.append(_readable(token) if "\\" in token else token)
    return written


def _line(depth: int) -> str:
    return "\n" + _INDENT * depth


def _readable(token: str) -> str:
    return _ESCAPES.sub(_character, token)


def _character(found: re.Match[str]) -> str:
    """Return escaped letters and signs themselves; control characters stay escaped."""
    characters: str = json.loads(f'"{found[2]}"')
    is_shown = characters.isprintable() and not set(characters) & {'"', "\\"}
    return found[1] + (characters if is_shown else found[2])
