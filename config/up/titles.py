"""Replacing a process's command line and environment, as `ps` and /proc show them. Stdlib only.

A forked process has those of its parent. Linux only.
"""

import ctypes
from pathlib import Path

# Places of the addresses in /proc/self/stat, counted after the name in parentheses.
_ARGUMENTS, _ENVIRONMENT = slice(45, 47), slice(47, 49)


def set_command_line(command: list[str]) -> None:
    """Show this command, as much as the space of the old one takes."""
    start, end = _addresses(_ARGUMENTS)
    text = b"".join(argument.encode() + b"\0" for argument in command)[: end - start - 1]
    ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)


def replace_in_environment(old: str, new: str) -> None:
    """Show the assignment `new` in place of `old`, which must not be shorter."""
    start, end = _addresses(_ENVIRONMENT)
    entry, shown = old.encode() + b"\0", new.encode()
    place = ctypes.string_at(start, end - start).find(entry)
    if place >= 0 and len(shown) < len(entry):
        ctypes.memmove(start + place, shown.ljust(len(entry), b"\0"), len(entry))


def _addresses(which: slice) -> tuple[int, int]:
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = map(int, fields[which])
    return start, end
