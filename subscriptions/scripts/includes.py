"""Inlining of common scripts into a script, and the place of an error in the result.

A line `$include$name` is replaced by the text of the common script, between two comments for
`located_line`: so an inlined script is plain text wherever it is stored or executed. An impossible
include stays as it is. It is refused when a script is saved; if the common script was deleted at
this moment, the engine reports `$include$name` as not defined, with the line.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from subscriptions.scripts.jobs import ScriptFault

# The text of a common script may occur several times in it.
MAX_INLINED_LENGTH = 500_000
MAX_DEPTH = 20
# Among which a cycle is searched; a longer chain is too deep.
MAX_NAMES = 500

_MARK = "$include$"
_LINE = re.compile(r"^[ \t]*\$include\$([A-Za-z0-9][A-Za-z0-9._-]*)[ \t]*;?[ \t]*$", re.MULTILINE)
_FIRST, _BEGIN, _END = "//$first$", "//$begin$", "//$end$"


@dataclass(frozen=True, slots=True)
class Library:
    """Common scripts by name; `first` are the names of those run first."""

    texts: Mapping[str, str] = field(default_factory=dict)
    first: Sequence[str] = ()


def inlined_script(script: str, library: Library) -> str:
    """Return the script as it is executed; a script without includes is returned as it is."""
    if not library.first and _MARK not in script:
        return script
    return _Inlining(library).whole(script)


def included_names(script: str) -> Iterator[tuple[str, int]]:
    """Yield the included names of a script, with their lines."""
    for found in _LINE.finditer(script):
        yield found[1], script.count("\n", 0, found.start()) + 1


def include_fault(script: str, library: Library, *, own: str = "") -> ScriptFault | None:
    """Return why the includes of a script are refused; `own` is the name of a common script."""
    for name, line in included_names(script):
        if name not in library.texts and name != own:
            return ScriptFault(text=f"there is no common script {name}; create it first", line=line)
        if own and (chain := _include_chain(name, own, library, seen=set())):
            return ScriptFault(text=f"it includes itself: {' → '.join((own, *chain))}", line=line)
    inlining = _Inlining(library)
    inlining.whole(script)
    if inlining.room < 0:
        return ScriptFault(
            text=f"with the scripts that it includes it is longer than {MAX_INLINED_LENGTH} "
            f"characters, or they include each other more than {MAX_DEPTH} deep"
        )
    return None


def located_line(script: str, line: int) -> tuple[str, int]:
    """Return the common script (or an empty name) and its line, of a line of an inlined script."""
    if _END not in script:
        return "", line
    places = [("", 0)]
    for text in script.split("\n")[:line]:
        name, number = places[-1]
        if text.startswith((_FIRST, _BEGIN)):
            # The include's own line has become this line.
            places[-1] = name, number + text.startswith(_BEGIN)
            places.append((text.rpartition("$")[2], 0))
        elif text.startswith(_END) and len(places) > 1:
            places.pop()
        else:
            places[-1] = name, number + 1
    return places[-1]


class _Inlining:
    """`room` is how many characters common scripts may still have; below 0 none is inlined."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self.room = MAX_INLINED_LENGTH

    def whole(self, script: str) -> str:
        first = [self._common(_FIRST, name, within=()) for name in sorted(self._library.first)]
        return "\n".join(
            [*(text for text in first if text is not None), self._inlined(script, within=())]
        )

    def _inlined(self, text: str, *, within: tuple[str, ...]) -> str:
        def common(found: re.Match[str]) -> str:
            return self._common(_BEGIN, found[1], within=within) or found[0]

        return _LINE.sub(common, text)

    def _common(self, mark: str, name: str, *, within: tuple[str, ...]) -> str | None:
        if name in within or name not in self._library.texts:
            return None
        text = self._library.texts[name]
        # Plus one: includes of empty scripts come to an end as well.
        self.room -= len(text) + 1
        if len(within) >= MAX_DEPTH:
            self.room = -1
        if self.room < 0:
            return None
        return f"{mark}{name}\n{self._inlined(text, within=(*within, name))}\n{_END}{name}"


def _include_chain(name: str, target: str, library: Library, *, seen: set[str]) -> list[str]:
    """Return the chain of includes from `name` to `target`; empty without a chain."""
    if name == target:
        return [name]
    if name in seen or len(seen) > MAX_NAMES:
        return []
    seen.add(name)
    for inner, _ in included_names(library.texts.get(name, "")):
        if chain := _include_chain(inner, target, library, seen=seen):
            return [name, *chain]
    return []
