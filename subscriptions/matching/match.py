"""Matching: the qualifying subscriptions of a message."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from operator import attrgetter

from subscriptions.filters import Document, FilterError, to_python
from subscriptions.filters.shapes import parse_alike
from subscriptions.matching.candidates import Candidate, find_candidates
from subscriptions.matching.destinations import EVERYBODY, Destination
from subscriptions.models import EventType, Subscription

FILTER_STRING = "filter-string"


class MismatchKind(Enum):
    NO_HEADER = "the message has no FILTER_STRING header"
    OTHER_HEADER = "it has another FILTER_STRING header"
    FILTER = "its filter is not true of the message"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why a message does not qualify for a subscription; as text, a sentence for people.

    OTHER_HEADER has the value that was sent and the one that the subscription wants, unless they
    are masked.
    """

    kind: MismatchKind
    sent: object = ""
    wanted: str = ""

    def __str__(self) -> str:
        if not self.wanted:
            return self.kind.value
        return f"its FILTER_STRING header is {self.sent!r}, not {self.wanted!r}"

    def masked(self) -> "Mismatch":
        """Return it without values of headers, for people who may not see payloads."""
        return Mismatch(self.kind)


def candidates(event_type: EventType, headers: Iterable[Mapping[str, str]]) -> list[Candidate]:
    """Return the event type's candidates for messages with these headers.

    They are not INACTIVE, and their header filter string is empty or a message's; those of a
    subscriber are ordered by position. Takes a single query.
    """
    sent = {message[FILTER_STRING] for message in headers if FILTER_STRING in message}
    return find_candidates(event_type.pk, filter_strings=sent)


def qualifying_candidates(
    subscriptions: Iterable[Candidate],
    document: Document,
    *,
    by_subscriber: bool = True,
    to: Destination = EVERYBODY,
) -> list[Candidate]:
    """Return the candidates that qualify; for a FIRST subscriber only the first.

    SHADOW subscriptions never compete with ACTIVE ones. A FIRST subscriber gets its first matching
    ACTIVE subscription; an earlier matching SHADOW subscription is recorded too. So a subscriber's
    SHADOW subscriptions record the message as if all were ACTIVE. A default destination qualifies
    only if no other subscription does; a SHADOW subscription takes messages from SHADOW default
    destinations only. A QUEUE passes `by_subscriber=False`, because it ignores subscribers. A
    message for a destination qualifies for no other.
    """
    chosen: list[Candidate] = []
    served: set[int] = set()
    recorded: set[int] = set()
    # Whether another subscription than a default destination qualifies, and a subscription other
    # than SHADOW.
    is_matched = is_taken = False
    for candidate in _default_ones_last(subscriptions):
        if not to.includes(candidate.subscriber_id, candidate.subscription_id):
            continue
        if candidate.takes_unmatched and (is_matched if candidate.is_shadow else is_taken):
            continue
        taken = served | recorded if candidate.is_shadow else served
        if by_subscriber and candidate.is_first_only and candidate.subscriber_id in taken:
            continue
        if find_mismatch(candidate.header_filter_string, candidate.filter, document) is None:
            chosen.append(candidate)
            (recorded if candidate.is_shadow else served).add(candidate.subscriber_id)
            if not candidate.takes_unmatched:
                is_matched, is_taken = True, is_taken or not candidate.is_shadow
    return chosen


def _default_ones_last(subscriptions: Iterable[Candidate]) -> Iterable[Candidate]:
    found = list(subscriptions)
    # Few event types have a default destination: the others are not sorted.
    return (
        sorted(found, key=attrgetter("takes_unmatched"))
        if any(match.takes_unmatched for match in found)
        else found
    )


def groups(chosen: Sequence[Candidate]) -> list[int]:
    """Return the QUEUE group of each candidate, from 0; -1 for SHADOW, outside all groups.

    Candidates with the same filter identity and the same header string share a group.
    """
    numbers: dict[tuple[str, str], int] = {}
    return [
        -1
        if candidate.is_shadow
        else numbers.setdefault(
            (candidate.header_filter_string, candidate.filter_identity), len(numbers)
        )
        for candidate in chosen
    ]


def subscriptions_by_position(subscription_ids: Sequence[int]) -> list[Subscription]:
    """Return the subscriptions in a SYNC message's order of preference: by position, then by id."""
    rows = Subscription.objects.filter(pk__in=subscription_ids).select_related("subscriber")
    return list(
        rows.only("name", "position", "lets_pass_on_timeout", "subscriber__name").order_by(
            "position", "id"
        )
    )


def find_mismatch(
    header_filter_string: str, filter_text: str, document: Document
) -> Mismatch | None:
    """Return why header string or filter exclude a message, or None if it qualifies."""
    if header_filter_string:
        sent = document.header.get(FILTER_STRING) if isinstance(document.header, dict) else None
        if sent is None:
            return _NO_HEADER
        if sent != header_filter_string:
            return Mismatch(MismatchKind.OTHER_HEADER, sent, header_filter_string)
    if filter_text and not _compiled(filter_text)(document):
        return _FILTER
    return None


# Made once: a message may have thousands of candidates that do not match.
_NO_HEADER, _FILTER = Mismatch(MismatchKind.NO_HEADER), Mismatch(MismatchKind.FILTER)


# Large, because filters are evaluated in rotation, and then a cache of recent filters smaller than
# their number is useless: 20,000 filters with a cache of 10,000 took 6.5 s a publish. Each takes
# 3.5 kB.
@lru_cache(maxsize=200_000)
def _compiled(filter_text: str) -> Callable[[Document], bool]:
    try:
        return to_python(parse_alike(filter_text))
    except FilterError:
        # Saving refuses such a filter; however it got here, it must not stop other subscriptions.
        return lambda _: False
