"""Error texts of failed runs: one text with the remedy; the log has the traceback of a fault."""

import errno
import traceback

import psycopg

from delivery.history.job import StepRefusedError

_MOST = 2000
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}
_OURS = "delivery."


def error_in_words(error: Exception) -> str:
    """Return why the run failed.

    The errors of steps are written for people; other errors get a text by their kind.
    """
    text = " ".join(str(error).split())[:_MOST]
    if isinstance(error, StepRefusedError):
        return text
    first, _, plan = str(error).strip().partition("\n")
    if type(error).__module__.startswith(_OURS):
        # Spark appends its whole plan.
        return f"{first[:_MOST]} The log of this run has the full error." if plan else text
    if isinstance(error, psycopg.OperationalError):
        return (
            f"The database connection failed: {text} Unfinished work does not count: run it again."
        )
    if isinstance(error, OSError):
        return _of_the_system(error, text)
    return (
        f"{type(error).__name__}: {first[:_MOST] or 'no details'}. "
        "The log of this run has the full error."
    )


def log_of(error: Exception) -> str:
    """Return the traceback; nothing for a refusal, whose message is all that there is to say."""
    if isinstance(error, StepRefusedError):
        return ""
    return "".join(traceback.format_exception(error))


def _of_the_system(error: OSError, text: str) -> str:
    if error.errno in _DISK_FULL:
        return (
            f"There is no room left ({text}): free some, and run it again. "
            "Partly written files do not count."
        )
    return (
        f"{text}. If that is the archive, see HISTORY_URL: "
        "it must be a place that Inturn may write. Then run it again."
    )
