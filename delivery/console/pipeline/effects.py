"""The changes tried by an EFFECT run, and their result: deliveries more and fewer."""

from collections.abc import Sequence
from dataclasses import dataclass

from delivery.models import PipelineRun, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedChange:
    """The condition of a subscription before and after, and the figures once the run is DONE.

    `asked` messages were tried; None if there are no figures.
    """

    subscription: str
    event_type: str
    before: str
    after: str
    asked: int | None = None
    more: int = 0
    fewer: int = 0
    example_of_more: int | None = None
    example_of_fewer: int | None = None


def read_tried_changes(run: PipelineRun) -> list[TriedChange]:
    """Return the changes tried by the run; none if it is no EFFECT run."""
    if run.step != Step.EFFECT:
        return []
    changes = run.options.get("changes", [])
    # In the order of the changes; empty before the end, and if no day is archived.
    found = run.result.get("effects") or [{}] * len(changes)
    return [
        TriedChange(
            **{
                "subscription": change["subscription"].removeprefix("subscription "),
                "event_type": change["event_type"],
                "before": _in_words(change["before"]),
                "after": _in_words(change["after"]),
            }
            | {name: value for name, value in figures.items() if name != "subscription"}
        )
        for change, figures in zip(changes, found, strict=True)
    ]


def _in_words(condition: Sequence[str] | None) -> str:
    """Return a condition, a pair of header filter string and filter, as text."""
    if condition is None:
        return "no message"
    header_filter_string, filter_text = condition
    parts: list[str] = []
    if header_filter_string:
        parts.append(f"FILTER_STRING {header_filter_string}")
    if filter_text:
        parts.append(filter_text)
    return " and ".join(parts) or "every message"
