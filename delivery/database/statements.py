"""The named SQL statements: each is a file in the folder `sql` of the executing package.

The first line of a file is the contract.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

SUFFIX = ".sql"


@cache
def statement(name: str) -> str:
    """Return the text of the statement with the name."""
    return _files()[name].read_text()


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
    # Works also in the zip file from which Spark's workers import the packages.
    folders = (
        package.joinpath("sql") for package in files("delivery").iterdir() if package.is_dir()
    )
    paths = [file for folder in folders if folder.is_dir() for file in folder.iterdir()]
    return {file.name.removesuffix(SUFFIX): file for file in paths if file.name.endswith(SUFFIX)}
