"""The archive's file system, with limits of time; and a probe of it in a separate process.

Arrow's clients of storages try again for a minute or ten, and some wait without end for a server
which accepts and never answers; the client of `abfs://` even ends the process if it finds no
credentials. So two things bound each call:

- The clients get time-outs where they have them (S3: every request; `gs://`: the attempts).
- `StorageProbe` asks for the archive's folder in a separate process, which can be killed and may
  crash: once before a step begins, and again and again while a step runs (`pipeline.progress`),
  which also covers everything without a time-out: mounts, and requests of Spark's workers and JVM.

The probe's process imports nothing but Arrow's file systems, and takes 0.1 s.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from pyarrow import fs

from delivery.history.spark.reach import ReachError, shown_place

ANSWER_SECONDS = 8.0
# Of each request to S3 without a byte, three times; and of all attempts of a call to `gs://`.
REQUEST_SECONDS, CONNECT_SECONDS, ATTEMPTS_SECONDS = 10.0, 3.0, 30
# In a probe, to get the reason in time.
_PROBE_ATTEMPTS_SECONDS = 2
# Imports our modules as this process does, whatever the folder it works in.
_PROGRAM = f"""\
import sys
sys.path.insert(0, {str(Path(__file__).resolve().parents[3])!r})
from {__name__} import main
main()
"""
_FOUND, _UNREACHABLE, _NO_FOLDER = range(3)
LONGEST_SECONDS = 120
# For how long an answer counts in a process with many questions.
ANSWERED_SECONDS = 15.0
_answered_at: dict[str, float] = {}
_MOST_REASON = 500
# The end of messages of `gs://`'s client: the same in other words.
_REPEATED = " error_info={"
# Before the error of a storage: the client may print other things.
_ERROR = "\x1e"


def file_system_at(
    url: str, *, attempts_seconds: int = ATTEMPTS_SECONDS
) -> tuple[fs.FileSystem, str]:
    """Return the file system of an archive's URL or absolute folder, and the folder's path in it.

    `s3a://` of Spark is `s3://` here. Asks S3 for the bucket's region, if nothing says it.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return fs.LocalFileSystem(), url
    if scheme == "gs" and "retry_limit_seconds=" not in rest:
        rest += f"{'&' if '?' in rest else '?'}retry_limit_seconds={attempts_seconds}"
    files, path = fs.FileSystem.from_uri(f"{'s3' if scheme == 's3a' else scheme}://{rest}")
    return _with_time_outs(files), path


def _with_time_outs(files: fs.FileSystem) -> fs.FileSystem:
    """Return the same S3 with time-outs, which the URL cannot have; others as they are."""
    if files.type_name != "s3":
        return files
    # The arguments for pickle.
    make, (options,) = files.__reduce__()
    limits = {"connect_timeout": CONNECT_SECONDS, "request_timeout": REQUEST_SECONDS}
    limited: fs.FileSystem = make(options | limits)
    return limited


class StorageProbe:
    """A question to the storage, which begins at once; `close` it, with or without an answer.

    A process waiting for a dead mount cannot even be killed, and is left behind.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._began_at = time.monotonic()
        self._said: IO[bytes] = TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=self._said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        # It may have ended already. The URL is no argument: `ps` would show the secrets.
        with suppress(BrokenPipeError):
            self._process.stdin.write(url.encode())
            self._process.stdin.close()

    @property
    def seconds(self) -> float:
        """For how long it has been asking."""
        return time.monotonic() - self._began_at

    @property
    def has_answer(self) -> bool:
        return self._process.poll() is not None

    def require(self, *, within: float) -> None:
        """Raise ReachError unless the storage answers in so many seconds and has the archive.

        A folder yet to be made counts as the archive.
        """
        try:
            code = self._process.wait(within)
        except subprocess.TimeoutExpired:
            raise self.silent(within) from None
        if code != _FOUND:
            raise self._error(self._answer(code))

    def silent(self, seconds: float) -> ReachError:
        """Return the error of a storage silent for so many seconds."""
        return self._error(f"its storage has not answered for {seconds:.0f} s")

    def close(self) -> None:
        self._process.kill()
        try:
            self._process.wait(0.2)
        except subprocess.TimeoutExpired:
            # It may be stuck, and then ends later or never.
            threading.Thread(target=self._process.wait, name="storage probe", daemon=True).start()
        self._said.close()

    def _error(self, reason: str) -> ReachError:
        return ReachError(
            f"The archive at {shown_place(self._url)} cannot be used: {reason}. Correct "
            "HISTORY_URL, or mend that place, and try again."
        )

    def _answer(self, code: int) -> str:
        self._said.seek(0)
        said = self._said.read(8192).decode(errors="replace").rpartition(_ERROR)[2]
        said = " ".join(said.partition(_REPEATED)[0].split())
        if code == _NO_FOLDER:
            return "it is a file, and must be a folder"
        said = said.replace(self._url, shown_place(self._url))[:_MOST_REASON].rstrip(". ")
        return said or f"its client ended with exit code {code}"


def require_storage(url: str) -> None:
    """Raise ReachError unless the storage answers within ANSWER_SECONDS."""
    probe = StorageProbe(url)
    try:
        probe.require(within=ANSWER_SECONDS)
    finally:
        probe.close()


def require_recent_answer(url: str) -> None:
    """Raise ReachError unless the storage has answered within ANSWERED_SECONDS, or does so now."""
    now = time.monotonic()
    if now - _answered_at.get(url, now - ANSWERED_SECONDS) >= ANSWERED_SECONDS:
        require_storage(url)
        _answered_at[url] = now


def _probe(url: str) -> int:
    """Ask for the archive's folder; print why the question fails."""
    try:
        files, path = file_system_at(url, attempts_seconds=_PROBE_ATTEMPTS_SECONDS)
        kind = files.get_file_info(path).type
    except Exception as error:  # noqa: BLE001 - each storage has other errors
        sys.stdout.write(f"{_ERROR}{error}")
        return _UNREACHABLE
    return _NO_FOLDER if kind == fs.FileType.File else _FOUND


def main() -> None:
    """Probe the storage of the URL on standard input, as a separate process."""
    # If nobody ends it any more.
    signal.alarm(LONGEST_SECONDS)
    code = _probe(sys.stdin.read())
    sys.stdout.flush()
    # Without the end of the clients, which may wait.
    os._exit(code)
