"""Refusals of a value, with the place of the fault in a text that is parsed."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a text, from 1; a ValidationError carries it as its code."""

    line: int
    column: int


class Refusal(str):
    """A sentence for the person who gave the value, with the remedy."""

    __slots__ = ("place",)

    place: Place | None

    def __new__(cls, text: str, place: Place | None = None) -> Self:
        refusal = super().__new__(cls, text)
        refusal.place = place
        return refusal
