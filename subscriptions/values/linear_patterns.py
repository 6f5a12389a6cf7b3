"""Regular expressions that are searched in time linear in the length of the text.

Python's `re` backtracks: given `^(a+)+$` and thirty letters, it does not return, and it holds the
interpreter lock meanwhile. This search follows all alternatives at once, as Thompson's algorithm
and RE2 do: a character leads from one set of places in the pattern to the next, and each such step
is cached. Python's own parser reads the pattern, so matches are those of `re.search`; patterns with
look-around or back-references are refused.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from re import _constants as op
from re import _parser as parser
from typing import Any, TypeAlias

# Places in a pattern; {n} multiplies those of the expression before it by n.
MAX_PLACES = 2000
# Cached for one pattern: steps and the places of the states that they lead to, some 50 bytes each.
_MAX_KEPT = 50_000

_SUPPORTED_FLAGS = re.UNICODE.value
_CATEGORIES = {
    op.CATEGORY_DIGIT: re.compile(r"\d"),
    op.CATEGORY_NOT_DIGIT: re.compile(r"\D"),
    op.CATEGORY_SPACE: re.compile(r"\s"),
    op.CATEGORY_NOT_SPACE: re.compile(r"\S"),
    op.CATEGORY_WORD: re.compile(r"\w"),
    op.CATEGORY_NOT_WORD: re.compile(r"\W"),
}
_WORD = re.compile(r"\w")

_Matches: TypeAlias = Callable[[str], bool]
_END = ""
_LAST_NEWLINE = "\n$"


class PatternError(ValueError):
    """The pattern cannot be searched; the message says why."""


@dataclass(eq=False, slots=True)
class _Place:
    """A place in the pattern: it consumes one character, or tests a boundary, or only leads on."""

    matches: _Matches | None = None
    boundary: Any = None
    following: "list[_Place]" = field(default_factory=list)


@dataclass(eq=False, slots=True)
class _State:
    """A set of current places.

    `after_word`: the last character was a word's, None at the beginning.
    """

    places: frozenset[_Place]
    after_word: bool | None
    steps: "dict[str, _State | None]" = field(default_factory=dict)


class LinearPattern:
    """`is_found_in` matches as `re.search` does, without the position."""

    def __init__(self, pattern: str) -> None:
        self._places = 0
        self._found = _Place()
        tree = _parsed(pattern)
        # By the identity of a class in the tree: a repeated class has many places and one test.
        self._testers: dict[int, _Matches] = {}
        try:
            self._first = self._sequence(tree, self._found)
        except RecursionError:
            raise PatternError("it is nested too deep") from None
        self._forget()

    def is_found_in(self, text: str, check: Callable[[], None] = lambda: None) -> bool:
        """Return whether any part of the text matches.

        `check` is called now and then, and may raise.
        """
        state = self._begin
        last = len(text) - 1
        for index, character in enumerate(text):
            symbol = _LAST_NEWLINE if character == "\n" and index == last else character
            try:
                following = state.steps[symbol]
            except KeyError:
                check()
                following = self._step(state, symbol)
            if following is None:
                return True
            state = following
        if _END not in state.steps:
            self._step(state, _END)
        return state.steps[_END] is None

    def _forget(self) -> None:
        self._kept = 0
        self._states: dict[tuple[frozenset[_Place], bool | None], _State] = {}
        self._begin = self._state(frozenset([self._first]), None)

    def _state(self, places: frozenset[_Place], after_word: bool | None) -> _State:
        return self._states.setdefault((places, after_word), _State(places, after_word))

    def _step(self, state: _State, symbol: str) -> _State | None:
        """Return the state after the symbol, or None if the pattern is found before it."""
        if self._kept >= _MAX_KEPT:
            # A concurrent search keeps a reference to its own states.
            self._forget()
        self._kept += 1 + len(state.places)
        reached = _reached(state, symbol)
        following = None
        if self._found not in reached:
            character = symbol[:1]
            next_places = [
                after
                for place in reached
                if place.matches is not None and character and place.matches(character)
                for after in place.following
            ]
            following = self._state(frozenset([self._first, *next_places]), _is_word(character))
        state.steps[symbol] = following
        return following

    def _place(self, **fields: Any) -> _Place:
        self._count()
        return _Place(**fields)

    def _count(self) -> None:
        self._places += 1
        if self._places > MAX_PLACES:
            raise PatternError(
                f"it has more than {MAX_PLACES} places; make it shorter, or its {{n}} smaller"
            )

    def _sequence(self, tree: Iterable[Any], after: _Place) -> _Place:
        for code, argument in reversed(list(tree)):
            after = self._node(code, argument, after)
        return after

    def _node(self, code: Any, argument: Any, after: _Place) -> _Place:
        if code in (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN):
            return self._place(matches=self._tester_of(code, argument), following=[after])
        if code is op.BRANCH:
            return self._place(following=[self._sequence(branch, after) for branch in argument[1]])
        if code is op.SUBPATTERN and not argument[1] and not argument[2]:
            return self._sequence(argument[3], after)
        if code in (op.MAX_REPEAT, op.MIN_REPEAT):
            least, most, repeated = argument
            return self._repeat(least, most, repeated, after)
        if code is op.AT:
            return self._place(boundary=argument, following=[after])
        words = "look-around, references and inline flags are not supported; write it without them"
        raise PatternError(words)

    def _tester_of(self, code: Any, argument: Any) -> _Matches:
        if code is not op.IN:
            return _tester(code, argument)
        if id(argument) not in self._testers:
            self._testers[id(argument)] = _tester(code, argument)
        return self._testers[id(argument)]

    def _repeat(self, least: int, most: Any, tree: Any, after: _Place) -> _Place:
        if most is op.MAXREPEAT:
            loop = self._place(following=[after])
            loop.following.append(self._sequence(tree, loop))
            after = loop
        else:
            for _ in range(most - least):
                after = self._place(following=[after, self._sequence(tree, after)])
        for _ in range(least):
            # Counted here, because a repeated empty expression adds no place.
            self._count()
            after = self._sequence(tree, after)
        return after


@lru_cache(maxsize=200)
def linear_pattern(pattern: str) -> LinearPattern:
    """Return the compiled pattern; raises PatternError."""
    return LinearPattern(pattern)


def _parsed(pattern: str) -> Any:
    try:
        tree = parser.parse(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"it is no regular expression: {error}") from None
    if tree.state.flags & ~_SUPPORTED_FLAGS:
        raise PatternError("inline flags are not supported; write it without them")
    return tree


def _reached(state: _State, symbol: str) -> set[_Place]:
    """Return the places that are reached without consuming a character, if this symbol is next."""
    reached: set[_Place] = set()
    waiting = list(state.places)
    while waiting:
        place = waiting.pop()
        if place in reached:
            continue
        reached.add(place)
        if place.matches is None and (
            place.boundary is None or _is_at(place.boundary, state.after_word, symbol)
        ):
            waiting += place.following
    return reached


def _is_at(boundary: Any, after_word: bool | None, symbol: str) -> bool:
    if boundary in (op.AT_BEGINNING, op.AT_BEGINNING_STRING):
        return after_word is None
    if boundary is op.AT_END:
        return symbol in (_END, _LAST_NEWLINE)
    if boundary is op.AT_END_STRING:
        return symbol == _END
    is_boundary = bool(after_word) != _is_word(symbol[:1])
    if boundary is op.AT_BOUNDARY:
        return is_boundary
    # In an empty text Python matches neither \b nor \B.
    return not is_boundary and not (after_word is None and symbol == _END)


def _is_word(character: str) -> bool:
    return _WORD.match(character) is not None


def _tester(code: Any, argument: Any) -> _Matches:
    if code is op.ANY:
        return lambda character: character != "\n"
    if code is op.LITERAL:
        return chr(argument).__eq__
    if code is op.NOT_LITERAL:
        return chr(argument).__ne__
    is_negated = bool(argument) and argument[0][0] is op.NEGATE
    members = [_member(*one) for one in argument[is_negated:]]
    return lambda character: any(takes(character) for takes in members) is not is_negated


def _member(code: Any, argument: Any) -> _Matches:
    if code is op.LITERAL:
        return chr(argument).__eq__
    if code is op.RANGE:
        return lambda character: argument[0] <= ord(character) <= argument[1]
    expression = _CATEGORIES[argument]
    return lambda character: expression.match(character) is not None
