"""The named SQL statements: each is a file in the folder `sql` of the executing package.

The first line of a file is the contract. `{name}` or `{name(it)}` in a statement is a part that
several statements share: the text of `delivery/database/parts/name.sql`, where `{it}` stands for
what the parentheses hold. Other placeholders are filled by the package of the statement.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

SUFFIX = ".sql"

_PART = re.compile(r"\{(\w+)(?:\((.*?)\))?\}")
_COMMENTS = re.compile(r"(?:--.*\n)*")


@cache
def statement(name: str) -> str:
    """Return the text of the statement with the name, parts included."""
    return _PART.sub(_part_or_placeholder, _files()[name].read_text())


def names() -> Collection[str]:
    """Return the names of all statements."""
    return _files().keys()


def _part_or_placeholder(match: re.Match[str]) -> str:
    part = _parts().get(match[1])
    return match[0] if part is None else part.replace("{it}", match[2] or "")


@cache
def numbered(name: str) -> tuple[bytes, list[str]]:
    """Return the statement with numbered parameters ($1 and so on), and their names in order."""
    text = statement(name)
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
    for number, parameter in enumerate(names, start=1):
        text = text.replace(f"%({parameter})s", f"${number}")
    return text.replace("%%", "%").encode(), names


@cache
def _files() -> Mapping[str, Traversable]:
    packages = [package for package in files("delivery").iterdir() if package.is_dir()]
    inner = [folder for package in packages for folder in package.iterdir() if folder.is_dir()]
    folders = [package.joinpath("sql") for package in (*packages, *inner)]
    return _named(file for folder in folders if folder.is_dir() for file in folder.iterdir())


@cache
def _parts() -> Mapping[str, str]:
    """Return the parts by name, without the comments that they begin with."""
    found = _named(files("delivery").joinpath("database", "parts").iterdir())
    return {name: _COMMENTS.sub("", file.read_text(), 1).strip() for name, file in found.items()}


def _named(paths: Iterable[Traversable]) -> Mapping[str, Traversable]:
    # Works also in the zip file from which Spark's workers import the packages.
    return {file.name.removesuffix(SUFFIX): file for file in paths if file.name.endswith(SUFFIX)}
