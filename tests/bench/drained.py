"""What a process that drained a mailbox says it did, on its standard output."""

import json
from dataclasses import asdict, dataclass
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """`seconds` are from the first fetch to the last acknowledgement; connections were there before.

    `got` are messages that came at least once, `duplicated` how often one came again. `out_of_order` are those that
    came behind a later one in the same batch: between clients there is no order.
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
