"""Faults of calls in words, fit to be stored and shown."""

import os


def unconnected(error: OSError) -> str:
    words = os.strerror(error.errno) if error.errno else str(error)
    return f"{words[:1].lower()}{words[1:]}"


def innermost(error: BaseException) -> BaseException:
    """Return the first exception of the chain; those around it are for programmers."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return error


def words_of(error: BaseException) -> str:
    return str(error) or type(error).__name__


def plain_text(text: str) -> str:
    """Replace characters that cannot be stored: the text may be a receiver's."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )[:500]
