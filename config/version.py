"""The version of Inturn, which `pyproject.toml` names. Stdlib only."""

import tomllib
from functools import cache
from importlib import metadata

from config.env import CHECKOUT

NAME = "inturn"


@cache
def version() -> str:
    """Return the version of this checkout, or of the installed package if there is no checkout."""
    try:
        project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    except OSError:
        return metadata.version(NAME)
    text: str = project["version"]
    return text
