"""The check of how subscriptions stand: which are STOPPED or DOWN at this moment."""

from collections.abc import Iterator

from delivery.management.doctor.findings import CheckResult, Severity
from delivery.standing.reading import standing_of_subscriptions, subscriptions_in_trouble
from delivery.standing.vocabulary import State
from subscriptions.models import Subscription

_SHOWN = 10


def check_standing() -> Iterator[CheckResult]:
    """Yield a finding for each of the first subscriptions in trouble, and one with their number."""
    found = subscriptions_in_trouble()
    names = Subscription.objects.select_related("subscriber").in_bulk(list(found)[:_SHOWN])
    for id, standing in standing_of_subscriptions(list(names)).items():
        yield CheckResult(
            check="standing",
            severity=Severity.WARNING,
            text=f"{names[id]} is {standing.state}: {standing.why}",
        )
    stopped = sum(state == State.STOPPED for state in found.values())
    yield CheckResult(
        check="standing",
        severity=Severity.WARNING if found else Severity.OK,
        text=f"{stopped} subscriptions are STOPPED, {len(found) - stopped} are DOWN",
        advice="The console's first page shows what each waits for." if found else "",
    )
