"""An index of filters with a required text at a path, as most filters have.

`$$->'Header'->>'project' = 'p7'`, alone or joined to others by AND, is true only of messages with
this text there, and `like 'p7-%'` of those with this beginning. So the text of a message finds
these filters among thousands, and only they and the filters without such a comparison have to be
evaluated.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from subscriptions.filters import Condition, Document, FilterError
from subscriptions.filters.shapes import parse_shape, string_of
from subscriptions.filters.to_python import comparable_text
from subscriptions.filters.tree import And, Comparison, Like, Operator, Path
from subscriptions.matching.candidates import Candidate

_Places: TypeAlias = list[int]
_SPECIAL = re.compile(r"[%_\\]")


@dataclass(frozen=True, slots=True)
class RequiredText:
    """A filter is true only if the text at the path is this text, or begins with it."""

    path: Path
    text: str
    is_whole: bool

    @property
    def length(self) -> int | None:
        """The number of characters to compare; None for the whole text."""
        return None if self.is_whole else len(self.text)


@dataclass(frozen=True, slots=True)
class _TextIndex:
    """For one path and length: required text → positions of the candidates."""

    read: Callable[[Document], str | None]
    length: int | None
    places: Mapping[str, _Places]

    def find(self, document: Document) -> Sequence[int]:
        text = self.read(document)
        return () if text is None else self.places.get(text[: self.length], ())


class CandidateIndex:
    """Candidates, without those impossible for a message."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.candidates = candidates
        self._others: _Places = []
        places: defaultdict[tuple[Path, int | None], defaultdict[str, _Places]] = defaultdict(
            lambda: defaultdict(list)
        )
        for place, candidate in enumerate(candidates):
            required = _required_text(candidate.filter) if candidate.filter else None
            if required is None:
                self._others.append(place)
            else:
                places[required.path, required.length][required.text].append(place)
        self._indexes = [
            _TextIndex(comparable_text(path, by_text), length, by_text)
            for (path, length), by_text in places.items()
        ]

    def possible(self, document: Document) -> Sequence[Candidate]:
        """Return, in their order, those whose filter may be true of the message."""
        if not self._indexes:
            return self.candidates
        places = list(self._others)
        for index in self._indexes:
            places += index.find(document)
        if len(places) > len(self._others):
            places.sort()
        return [self.candidates[place] for place in places]


@lru_cache(maxsize=200_000)
def _required_text(filter_text: str) -> RequiredText | None:
    """Return a text without which the filter is not true; None if there is none."""
    try:
        return _required(*parse_shape(filter_text))
    except FilterError:
        return None


def _required(tree: Condition, strings: Sequence[str]) -> RequiredText | None:
    """Find it in the tree of a shape: most of many filters are never evaluated, so never filled."""
    match tree:
        case Comparison(Path(is_text=True) as path, Operator.EQUAL, str() as text):
            return RequiredText(path, string_of(text, strings), is_whole=True)
        case Like(path, pattern) if beginning := _beginning(string_of(pattern, strings)):
            return RequiredText(path, beginning, is_whole=False)
        case And(conditions):
            found = (_required(condition, strings) for condition in conditions)
            return next(filter(None, found), None)
    return None


def _beginning(pattern: str) -> str:
    return _SPECIAL.split(pattern, maxsplit=1)[0]
