"""Text from others, with control characters made visible.

A terminal obeys some of them: ESC and the C1 controls change colours, the title and other parts of
the screen, and bidirectional controls change the order in which text is shown.
"""

import re

_BIDIRECTIONAL = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
# All except tab and line feed.
_CONTROLS = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDIRECTIONAL}]")
# JSON has the others only as escapes, or between values.
_CONTROLS_IN_JSON = re.compile(rf"[\x7f-\x9f{_BIDIRECTIONAL}]")


def visible_text(text: str) -> str:
    r"""Return the text with escapes such as `\x1b` and `\u202e`; tabs and line feeds stay."""
    return _CONTROLS.sub(_escape, text)


def visible_json(text: str) -> str:
    r"""Return JSON of the same value, with such characters in strings escaped, as `\u009b`."""
    return _CONTROLS_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"
