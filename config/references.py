"""Where a command looks up the references of a configuration document."""

import re
from dataclasses import dataclass
from pathlib import Path

from config.env_values import wrong_value

# Not the beginning of a setting, which would let a document send a secret to an endpoint.
_PREFIX = re.compile(r"(?!INTURN_|DATABASE_)[A-Z][A-Z0-9_]{6,}_")

_ALLOWED = (
    "at least eight capitals, digits and underscores, with an underscore at the end, and not "
    "INTURN_ at the beginning"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSettings:
    """`env:NAME` is a variable with the prefix, `file:PATH` is below the folder; None: no file."""

    prefix: str
    folder: Path | None


def reference_settings(prefix: str, folder: str) -> ReferenceSettings:
    """Check both settings; raises ImproperlyConfigured."""
    if folder and not Path(folder).is_absolute():
        raise wrong_value("INTURN_REFERENCE_FOLDER", folder, allowed="an absolute path")
    if not _PREFIX.fullmatch(prefix):
        raise wrong_value("INTURN_REFERENCE_PREFIX", prefix, allowed=_ALLOWED)
    return ReferenceSettings(prefix=prefix, folder=Path(folder) if folder else None)
