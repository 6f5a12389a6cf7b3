"""The report of messages taken over from an old broker, in three parts."""

from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter

from delivery.management.importing.lines import ImportLineError
from subscriptions.models import Subscription
from subscriptions.values.counts import counted

MAX_LISTED = 20


@dataclass(slots=True)
class TakenOver:
    """Counts of an import, or of a check.

    `of_subscription` are deliveries or keys by the subscription's id. `notes` belong to the part
    "differently".
    """

    lines: int = 0
    messages: int = 0
    of_subscription: Counter[int] = field(default_factory=Counter)
    earlier: int = 0
    repeated: int = 0
    notes: list[str] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    faults: int = 0
    listed: list[ImportLineError] = field(default_factory=list)

    @property
    def deliveries(self) -> int:
        return self.of_subscription.total()

    def refuse(self, error: ImportLineError) -> None:
        """Add a line to the part "impossible"; only the first are listed."""
        self.faults += 1
        if self.faults <= MAX_LISTED:
            self.listed.append(error)


def taken_over_report(found: TakenOver, *, noun: str) -> list[str]:
    """Return the lines of the report; `noun` is the thing counted for each subscription."""
    ids = list(found.of_subscription)
    subscriptions = Subscription.objects.filter(pk__in=ids).select_related("subscriber")
    names = {
        subscription.pk: f"{subscription.subscriber.name}/{subscription.name}"
        for subscription in subscriptions
    }
    taken = sorted(
        f"{names.get(id, id)}: {counted(count, noun)}"
        for id, count in found.of_subscription.items()
    )
    differently = [
        *found.notes,
        *(f"{text}: {count:,}" for text, count in sorted(found.counted.items())),
    ]
    if found.earlier:
        differently.append(f"{counted(found.earlier, 'line')} imported before, and left out")
    if found.repeated:
        differently.append(
            f"left out: {counted(found.repeated, 'repetition')} of an earlier line of the file"
        )
    parts = (
        ("Taken over", found.deliveries, taken),
        ("Taken over differently", len(differently), differently),
        ("Impossible", found.faults, _impossible(found)),
    )
    return [
        line
        for title, count, lines in parts
        for line in (f"{title} ({count:,})", *(f"  {item}" for item in lines))
    ]


def _impossible(found: TakenOver) -> list[str]:
    # Some faults of a line are found only after the next lines were read.
    listed = [str(error) for error in sorted(found.listed, key=attrgetter("number"))]
    unlisted = found.faults - len(listed)
    return [*listed, f"and {counted(unlisted, 'more line')}"] if unlisted else listed
