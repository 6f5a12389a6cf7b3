"""Trying the script in a form, saved or not, on a sample, a stored message or another body."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from delivery.calls.script_trial import TriedScript, try_script
from delivery.calls.slots import NoSlotError
from delivery.calls.trial import Trial
from delivery.console.shared.header_lines import parse_header_lines
from delivery.console.subscriptions.filter_trial import Mistake
from delivery.models import Message
from delivery.support.payload import Payload, payload_of
from subscriptions.filters import header_name
from subscriptions.models import EventType, Kind
from subscriptions.scripts.jobs import ScriptFault
from subscriptions.values.header_values import HeaderError

SAMPLE, LAST, OWN = "sample", "last", "own"
# The newest messages among which a person chooses.
OFFERED = 5
BUSY = "Other scripts are being tried; try it again in a few seconds."


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedScript:
    """The content of the form; `message_id` is an offered message."""

    text: str
    on: str = SAMPLE
    headers: str = ""
    body: str = ""
    message_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptTrial:
    """The message before, and the request or the answer after; or the mistake.

    `note`: the missing input, if there is nothing to try.
    """

    note: str = ""
    mistake: Mistake | None = None
    fault: ScriptFault | None = None
    of: str = ""
    before: Payload | None = None
    tried: TriedScript | None = None
    after: Payload | None = None
    offered: Sequence[Message] = field(default=())
    message: Message | None = None


def try_typed(
    typed: TypedScript, *, event_type: EventType | None, message: Message | None
) -> ScriptTrial:
    """Execute the script; `message` is the stored message, if wanted."""
    if not typed.text.strip():
        return ScriptTrial(note="Write a script first.")
    if event_type is None:
        return ScriptTrial(note="Choose an event type first: its messages are the input.")
    try:
        of, trial = _message(typed, event_type, message)
    except (LookupError, HeaderError) as error:
        return ScriptTrial(note=str(error.args[0]))
    try:
        tried = try_script(typed.text, trial, is_sync=event_type.kind == Kind.SYNC)
    except NoSlotError:
        return ScriptTrial(note=BUSY)
    return ScriptTrial(
        of=of,
        mistake=None if tried.fault is None else mistake_of(tried.fault, typed.text),
        fault=tried.fault,
        before=payload_of(trial.body),
        tried=tried,
        after=None if tried.is_unchanged else payload_of(tried.body),
    )


def mistake_of(fault: ScriptFault, text: str) -> Mistake:
    """Return a fault with the line of the script."""
    lines = text.split("\n")
    if fault.source or fault.line is None or not 1 <= fault.line <= len(lines):
        return Mistake(text=str(fault))
    mark = "" if fault.column is None else f"{' ' * (fault.column - 1)}^"
    return Mistake(
        text=str(fault), line=lines[fault.line - 1].rstrip().replace("\t", " "), mark=mark
    )


def _message(
    typed: TypedScript, event_type: EventType, message: Message | None
) -> tuple[str, Trial]:
    """Return a message with the name; LookupError and HeaderError name the missing part."""
    if typed.on == LAST:
        if message is None:
            raise LookupError(
                f"No message of {event_type} is stored yet; try it on the sample or on your own."
            )
        return message.public_id, Trial(
            content_type=message.content_type, body=bytes(message.body), headers=message.headers
        )
    headers = parse_header_lines(typed.headers, stored={})
    named = {header_name(name): value for name, value in headers.items()}
    if typed.on == OWN:
        body = typed.body.encode(errors="replace")
        return "your own", Trial(content_type=event_type.content_type, body=body, headers=named)
    if event_type.sample is None:
        raise LookupError(
            f"{event_type} has no sample; add one to it, or try the script on another message."
        )
    sample = json.dumps(event_type.sample, indent=2, ensure_ascii=False).encode(errors="replace")
    return f"the sample of {event_type}", Trial(
        content_type=event_type.content_type, body=sample, headers=named
    )
