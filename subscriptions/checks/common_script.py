"""Common scripts and the scripts with includes: the effect of a change on the others.

Only saving is checked. If a script and an included common script are saved at the same moment,
neither check sees the other script; then the deliveries of the subscription fail, with the line.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from itertools import islice
from typing import Any

from subscriptions.checks.script import fault, fault_refusal, library
from subscriptions.models import CommonScript, Subscription
from subscriptions.scripts.includes import Library, included_names, inlined_script
from subscriptions.scripts.jobs import ScriptFault
from subscriptions.values.refusals import Refusal

_MARK = "$include$"
# So many are named; a person mends those and sees the next faults.
MOST_NAMED = 3
# Ten thousand different scripts compile in about so long. The rest is not checked.
MOST_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredScript:
    """A script with the words for its place; `own` is the name of a common script."""

    label: str
    text: str
    own: str = ""

    def inlined(self, common: Library) -> str:
        return inlined_script(self.text, Library(common.texts) if self.own else common)


def broken_by(
    scripts: Iterable[StoredScript], *, before: Library, after: Library
) -> Iterator[tuple[StoredScript, ScriptFault]]:
    """Yield scripts which compile with the old common scripts, and not with the new."""
    until = time.monotonic() + MOST_SECONDS
    sound: set[str] = set()
    for script in scripts:
        text = script.inlined(after)
        if text in sound or text == script.inlined(before):
            continue
        if time.monotonic() >= until:
            return
        found = fault(script.text, common=after, own=script.own)
        if found is None:
            sound.add(text)
        elif fault(script.text, common=before, own=script.own) is None:
            yield script, found


def refusals(
    values: Mapping[str, Any], *, stored: CommonScript | None = None, common: Library | None = None
) -> dict[str, Refusal]:
    """Return field → reason for the given values that are refused; empty if they can be saved.

    `common` has the common scripts as they will be, if the caller checks the including scripts for
    all of them at once.
    """
    row = CommonScript() if stored is None else copy(stored)
    for name in {"name", "text", "runs_first"} & set(values):
        setattr(row, name, values[name])
    if stored is not None and (refused := _rename_refusal(stored, row.name)):
        return {"name": Refusal(refused)}
    before = library() if common is None else common
    if found := fault(values.get("text", ""), common=before, own=row.name):
        return {"text": fault_refusal(found)}
    old_name = row.name if stored is None else stored.name
    if common is None and (refused := _refusal_by_others(row, old_name=old_name, before=before)):
        return {"text": Refusal(refused)}
    return {}


def _refusal_by_others(changed: CommonScript, *, old_name: str, before: Library) -> str:
    """Return which scripts would not be valid with a changed common script; empty if none."""
    own = {old_name, changed.name}
    texts = {name: text for name, text in before.texts.items() if name not in own}
    first = {*before.first} - own | ({changed.name} if changed.runs_first else set())
    after = Library({**texts, changed.name: changed.text}, first=sorted(first))
    concerns_all = changed.runs_first or not first.issuperset(before.first)
    others = (
        script for script in _stored(mark="" if concerns_all else _MARK) if script.own not in own
    )
    found = list(islice(broken_by(others, before=before, after=after), MOST_NAMED + 1))
    if not found:
        return ""
    said = "; ".join(
        f"{script.label}: {described_fault(fault)}" for script, fault in found[:MOST_NAMED]
    )
    more = "; and others" if len(found) > MOST_NAMED else ""
    return f"Change it, or first the scripts that would not be valid with it: {said}{more}."


def described_fault(fault: ScriptFault) -> str:
    """Return the fault with line and column."""
    if fault.line is None or fault.column is None:
        return str(fault)
    of = f" of {fault.source}" if fault.source else ""
    return f"line {fault.line}{of}, column {fault.column}: {fault.text}"


def _rename_refusal(row: CommonScript, name: str) -> str:
    """Return why a stored common script cannot get this name; empty if it can."""
    if name == row.name or not (found := includers(row.name)):
        return ""
    return f"It is included as {row.name} by {found}; create another one instead."


def includers(name: str) -> str:
    """Name the scripts which include a common script, and so need it; empty if there are none."""
    return named(
        script for script in _stored(mark=_MARK + name) if name in dict(included_names(script.text))
    )


def named(scripts: Iterable[StoredScript]) -> str:
    """Name the first of these scripts."""
    labels = [script.label for script in islice(scripts, MOST_NAMED + 1)]
    return ", ".join(labels[:MOST_NAMED]) + (" and others" if len(labels) > MOST_NAMED else "")


def _stored(*, mark: str) -> Iterator[StoredScript]:
    """Yield the stored scripts with the mark."""
    rows = Subscription.objects.exclude(script="").filter(script__contains=mark)
    named_rows = rows.order_by("subscriber__name", "name").values_list(
        "subscriber__name", "name", "script"
    )
    for subscriber, name, text in named_rows.iterator():
        yield StoredScript(label=f"subscription {subscriber}/{name}", text=text)
    for name, text in (
        CommonScript.objects.filter(text__contains=mark)
        .order_by("name")
        .values_list("name", "text")
    ):
        yield StoredScript(label=f"common script {name}", text=text, own=name)
