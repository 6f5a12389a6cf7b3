"""A wall clock that can be wrong, for all processes of a product; it needs a C compiler.

Monotonic clocks stay right, as they do on a machine whose clock is set.
"""

import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

_SOURCE = Path(__file__).with_name("wrong_clock.c")
# The largest error, either way.
LONGEST_STEP_SECONDS = 15
_COMPILER = shutil.which("cc")


class MovedClock:
    """All processes that are started with its environment step at once."""

    def __init__(self, folder: Path, *, compiler: str) -> None:
        # PostgreSQL reads both files, perhaps as `nobody`.
        folder.chmod(0o711)
        self._library = folder / "wrong_clock.so"
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-O2", "-o", self._library, _SOURCE, "-ldl"], check=True
        )
        self._library.chmod(0o755)
        self._offset = folder / "wrong_clock"
        self._offset.write_bytes(_packed(0))
        self._offset.chmod(0o644)

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of a process that uses this clock."""
        return {"LD_PRELOAD": str(self._library), "WRONG_CLOCK": str(self._offset)}

    def set_off(self, seconds: int) -> None:
        """Make the clock wrong by so many seconds from now on."""
        # In place: the processes have mapped the file.
        with self._offset.open("r+b") as file:
            file.write(_packed(seconds))


def _packed(seconds: int) -> bytes:
    return struct.pack("q", seconds)


def staged(folder: Path) -> MovedClock | None:
    """Return a clock, or None if none can be staged here."""
    return MovedClock(folder, compiler=_COMPILER) if _COMPILER else None
