"""An index of filters that require a text at a path, as most of many filters do.

`$$->'Header'->>'project' = 'p7'`, alone or joined to others by AND, is true only of messages with
that text there. So the text of a message finds these filters among thousands, and only they and the
filters without such a comparison have to be evaluated.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from subscriptions.filters import Condition, Document, FilterError
from subscriptions.filters.shapes import parse_alike
from subscriptions.filters.to_python import comparable_text
from subscriptions.filters.tree import And, Comparison, Operator, Path
from subscriptions.matching.match import Candidate

_Places: TypeAlias = list[int]


@dataclass(frozen=True, slots=True)
class _TextIndex:
    """The places of the candidates that require a text at one path, by that text."""

    read: Callable[[Document], str | None]
    places: Mapping[str, _Places]


class CandidateIndex:
    """Candidates of which those that cannot qualify for a message are left out."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.candidates = candidates
        by_path: defaultdict[Path, defaultdict[str, _Places]] = defaultdict(
            lambda: defaultdict(list)
        )
        self._others: _Places = []
        for place, candidate in enumerate(candidates):
            required = _required_text(candidate.filter) if candidate.filter else None
            if required is None:
                self._others.append(place)
            else:
                path, text = required
                by_path[path][text].append(place)
        self._indexes = [
            _TextIndex(comparable_text(path, places), places) for path, places in by_path.items()
        ]

    def possible(self, document: Document) -> Sequence[Candidate]:
        """Return, in their order, those whose filter may be true of the message."""
        if not self._indexes:
            return self.candidates
        places = list(self._others)
        for index in self._indexes:
            text = index.read(document)
            if text is not None:
                places += index.places.get(text, ())
        if len(places) > len(self._others):
            places.sort()
        return [self.candidates[place] for place in places]


@lru_cache(maxsize=200_000)
def _required_text(filter_text: str) -> tuple[Path, str] | None:
    """Return a path and the text without which the filter is not true; None if there is none."""
    try:
        return _required(parse_alike(filter_text))
    except FilterError:
        return None


def _required(tree: Condition) -> tuple[Path, str] | None:
    match tree:
        case Comparison(Path(is_text=True) as path, Operator.EQUAL, str() as text):
            return path, text
        case And(conditions):
            return next(filter(None, map(_required, conditions)), None)
    return None
