"""The report of the draining process of a mailbox, on its standard output."""

import json
from dataclasses import asdict, dataclass
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """`seconds` run from the first fetch to the last acknowledgement; connections were open before.

    `got` counts messages received at least once, `duplicated` the repetitions, `out_of_order` the
    messages received behind a later message in the same batch: there is no order between clients.
    """

    seconds: float
    acknowledged: int
    got: int = 0
    duplicated: int = 0
    out_of_order: int = 0

    @property
    def rate(self) -> float:
        return self.acknowledged / self.seconds

    def say(self) -> None:
        print(json.dumps(asdict(self)))

    @classmethod
    def read(cls, said: bytes) -> Self:
        return cls(**json.loads(said))
