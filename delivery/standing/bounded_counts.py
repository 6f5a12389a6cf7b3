"""Counts up to a limit, so a page costs the same however long the backlog is."""

from dataclasses import dataclass

BACKLOG_LIMIT = 100_000
WAITING_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Bounded:
    """A number counted up to `limit`: beyond that it is known only to be more."""

    found: int
    limit: int

    def __str__(self) -> str:
        return f"{self.limit:,}+" if self.found > self.limit else f"{self.found:,}"

    def __bool__(self) -> bool:
        return self.found > 0

    def of(self, noun: str) -> str:
        """Return the count with a noun, such as `1 message` or `10,000+ messages`."""
        return f"{self} {noun}" if self.found == 1 else f"{self} {noun}s"
