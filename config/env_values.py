"""The values of settings in an environment, validated as they are read.

An error is one line: the setting, the value unless it may be a secret, and the allowed values.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

DEFAULT = "default"
FLAGS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


@dataclass(frozen=True, slots=True)
class FoundSetting:
    """A setting as it was read: `source` is the environment, a file, or DEFAULT."""

    name: str
    value: str
    source: str


class EnvReader:
    """The settings in an environment.

    If `NAME_FILE` names a file, the file's content takes precedence over `NAME`. Surrounding white
    space, such as the line break at the end of a file, is not part of the value; an empty variable
    counts as unset. All methods raise ImproperlyConfigured.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        # For each setting read so far.
        self.found: dict[str, FoundSetting] = {}

    def text(self, name: str, *, default: str = "") -> str:
        """Return the value; refuse a blank value, usually a secret that failed to load."""
        path = self._environment.get(f"{name}_FILE", "")
        source = f"{name}_FILE" if path else name
        content = _content(source, path) if path else self._environment.get(name, "")
        if (path or content) and not content.strip():
            raise ImproperlyConfigured(
                f"{source}: the value is blank; set one, or unset the variable"
            )
        given = content.strip()
        place = f"file {path}" if path else "environment"
        self.found[name] = FoundSetting(name, given or default, place if given else DEFAULT)
        return given or default

    def integer(self, name: str, *, default: int, least: int, most: int) -> int:
        text = self.text(name, default=str(default))
        # Longer numbers are out of every range, and int() would refuse them.
        if re.fullmatch(r"[0-9]{1,15}", text) and least <= int(text) <= most:
            return int(text)
        raise wrong_value(name, text, allowed=f"a whole number from {least} to {most}")

    def flag(self, name: str, *, default: bool) -> bool:
        text = self.text(name, default=str(default))
        if text.lower() in FLAGS:
            return FLAGS[text.lower()]
        raise wrong_value(name, text, allowed="true or false")

    def choice(self, name: str, *, default: str, choices: Sequence[str]) -> str:
        """Return the matching choice, without regard to case."""
        text = self.text(name, default=default)
        if text.upper() in choices:
            return text.upper()
        raise wrong_value(name, text, allowed=f"one of {', '.join(choices)}")

    def matching(
        self, name: str, *, pattern: re.Pattern[str], allowed: str, default: str = ""
    ) -> str:
        """Return a text matching the whole pattern, or the default; `allowed` describes it."""
        text = self.text(name, default=default)
        if text == default or pattern.fullmatch(text):
            return text
        raise wrong_value(name, text, allowed=allowed)

    def items(self, name: str) -> list[str]:
        """Return the comma-separated items, without empty items."""
        return [item.strip() for item in self.text(name).split(",") if item.strip()]


def wrong_value(name: str, text: str, *, allowed: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"{name}: {text!r} is not {allowed}")


def _content(source: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ImproperlyConfigured(f"{source}: {path} cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise ImproperlyConfigured(f"{source}: {path} is not a text in UTF-8") from error
