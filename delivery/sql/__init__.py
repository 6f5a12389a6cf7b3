"""The statements of a message's path, one a file: the first line is its promise."""

import re
from functools import cache
from importlib.resources import files


@cache
def statement(name: str) -> str:
    """Return the text of `delivery/sql/<name>.sql`."""
    # Also from the zip in which Spark's workers have us.
    return files(__name__).joinpath(f"{name}.sql").read_text()


@cache
def numbered(name: str) -> tuple[bytes, list[str]]:
    """Return the statement with its parameters as the server wants them, $1 and so on, and their names in that order."""
    text = statement(name)
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
    for number, parameter in enumerate(names, start=1):
        text = text.replace(f"%({parameter})s", f"${number}")
    return text.replace("%%", "%").encode(), names
