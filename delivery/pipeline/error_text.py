"""Error texts of failed runs: a text with the remedy; the log has the traceback of a fault.

Nothing here raises an error, whatever the error is: the text may be in an ended JVM, may have
characters that PostgreSQL does not store, or may be as long as a message.
"""

import errno
import traceback

import psycopg

from delivery.history.job import StepRefusedError
from delivery.history.spark.jvm import JavaError
from delivery.history.spark.reach import ReachError

_MOST = 2000
_MOST_LOG = 50_000
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}
_OURS = "delivery."
# Their messages say everything.
_REFUSALS = (StepRefusedError, ReachError, JavaError)


def error_in_words(error: Exception) -> str:
    """Return why the run failed.

    The errors of steps are written for people; other errors get a text by their kind.
    """
    first, _, plan = _text_of(error).strip().partition("\n")
    first = first.strip()[:_MOST]
    text = " ".join(f"{first} {plan[:_MOST]}".split())[:_MOST]
    if isinstance(error, _REFUSALS):
        return text
    if type(error).__module__.startswith(_OURS):
        # Spark appends the whole plan.
        return f"{first} The log of this run has the full error." if plan else text
    if isinstance(error, psycopg.OperationalError):
        return (
            f"The database connection failed: {text} Unfinished work does not count: run it again."
        )
    if isinstance(error, OSError):
        return _of_the_system(error, text)
    return (
        f"{type(error).__name__}: {first or 'no details'}. The log of this run has the full error."
    )


def log_of(error: Exception) -> str:
    """Return the traceback, in the middle shortened; nothing for a refusal."""
    if isinstance(error, _REFUSALS):
        return ""
    text = "".join(traceback.format_exception(error))
    if len(text) > _MOST_LOG:
        half = _MOST_LOG // 2
        text = f"{text[:half]}\n…\n{text[-half:]}"
    return storable(text)


def storable(text: str) -> str:
    """Return the text as PostgreSQL stores it: without NUL, and half characters escaped."""
    return text.encode(errors="backslashreplace").decode().replace("\0", "\\x00")


def _text_of(error: Exception) -> str:
    try:
        return storable(str(error))
    except Exception:  # noqa: BLE001 - whatever the class does
        return ""


def _of_the_system(error: OSError, text: str) -> str:
    if error.errno in _DISK_FULL:
        return (
            f"There is no room left ({text}): free some, and run it again. "
            "Partly written files do not count."
        )
    return (
        f"{text or 'The system refused a call'}. If that is the archive, see HISTORY_URL: "
        "it must be a place that Inturn may write. Then run it again."
    )
