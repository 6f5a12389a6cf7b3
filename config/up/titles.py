"""Replacing a process's name, command line and environment, as `ps` and `top` show them.

A forked process has the titles of the parent. Linux only. Stdlib only, because setproctitle writes
over the environment, by which `config.up.processes` finds orphans, and django-q2 calls it by
itself.
"""

import ctypes
import sys
from pathlib import Path

# Places of the addresses in /proc/self/stat, counted after the name in parentheses.
_ARGUMENTS, _ENVIRONMENT = slice(45, 47), slice(47, 49)


def name_process(name: str) -> None:
    """Show `inturn: <name>` in `ps`, and `inturn-<name>` in `top` for the calling thread."""
    if sys.platform == "linux":
        set_command_line([f"inturn: {name}"])
        name_thread(name)


def name_thread(name: str) -> None:
    """Show `inturn-<name>`, of which the kernel keeps 15 characters, as the thread's name."""
    if sys.platform == "linux":
        Path("/proc/thread-self/comm").write_text(f"inturn-{name}".replace(" ", "-"))


def set_command_line(command: list[str]) -> None:
    """Show this command, cut to the space of the old command."""
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
