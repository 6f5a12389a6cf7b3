"""Progress of a run in the terminal: a bar with rows and rows per second.

Output to a file has a line per activity instead.
"""

import sys
from types import TracebackType
from typing import Self

from tqdm import tqdm


class StepBar:
    """A `Progress` of `delivery.history.job`, on standard error."""

    def __init__(self, step: str) -> None:
        self._step = step
        self._bar = tqdm(unit=" rows", unit_scale=True, desc=step, file=sys.stderr, disable=None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()

    def doing(self, text: str) -> None:
        if self._bar.disable:
            sys.stderr.write(f"{self._step}: {text}\n")
            sys.stderr.flush()
        else:
            self._bar.set_description_str(f"{self._step}: {text}")

    def advance(self, done: int, count: int | None) -> None:
        self._bar.total = count
        self._bar.n = done
        self._bar.refresh()
