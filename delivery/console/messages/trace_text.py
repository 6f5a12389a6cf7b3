"""The trace of a message as a text for a ticket: readable as it is, at most 100 columns mostly."""

from collections.abc import Iterator

from delivery.console.messages.page import MessagePage
from delivery.console.messages.shown_deliveries import ShownAttempt, ShownDelivery
from delivery.console.messages.trace_event import Event
from delivery.console.messages.trace_export import TraceReader, pages_of, request_in
from delivery.console.shared.labels import milliseconds
from delivery.console.shared.times import exact
from delivery.models import Message
from subscriptions.changes import MASKED

_HIDDEN = "(payloads are left out: its reader may not see them)"


def text_parts(message: Message, reader: TraceReader) -> Iterator[str]:
    """Yield the text in parts: the message, then events and deliveries, then headers and body."""
    page = None
    for number, page in enumerate(pages_of(message, reader)):
        if number == 0:
            yield _joined(_head(page, reader))
        yield _joined(_part(page, reader))
    if page is not None:
        yield _joined(_rest(page, reader))


def _joined(lines: Iterator[str]) -> str:
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _head(page: MessagePage, reader: TraceReader) -> Iterator[str]:
    message = page.message
    yield f"{message.public_id}  {message.event_type.name}"
    yield f"published  {exact(message.published_at)} by {message.publisher or 'Inturn'}"
    if message.destination:
        yield f"for        {message.destination} only"
    if message.edited_from_id:
        yield f"copy of    msg_{message.edited_from_id}, edited"
    counts = ", ".join(f"{count:,} {status}" for status, count in page.part.statuses)
    yield f"deliveries {counts or 'none'}"
    yield f"exported   {exact(reader.now)} by {reader.name}"


def _part(page: MessagePage, reader: TraceReader) -> Iterator[str]:
    part = page.part
    of = f", deliveries {part.first:,} to {part.last:,} of {part.total:,}" if part.total else ""
    yield from _title(f"Trace{of}")
    for event in page.trace.events:
        yield _event(event, page.message)
    if not page.trace.is_whole:
        yield "(journal and reports of failures are missing: searching them took too long)"
    for shown in page.deliveries:
        yield from _delivery(shown, reader)


def _event(event: Event, message: Message) -> str:
    of = f"  [{event.delivery.subscription}]" if event.delivery else ""
    after = event.after(message.published_at)
    return f"{exact(event.at)}  {after:<14} {event.name:<14} {event.text}{of}"


def _delivery(shown: ShownDelivery, reader: TraceReader) -> Iterator[str]:
    row = shown.delivery
    yield from _title(f"Delivery {row.pk} to {row.subscription}: {row.status}")
    if row.reason:
        yield f"reason   {row.reason}"
    if shown.next_try:
        at = f", {exact(shown.next_try.at)}" if shown.next_try.at else ""
        yield f"next try {shown.next_try.words}{at}"
    if shown.earlier:
        yield f"({shown.earlier:,} earlier attempts are left out)"
    for item in reversed(shown.attempts):
        yield from _attempt(item, shown, reader)
    if shown.sent:
        yield "body as sent, made by the subscription's script:"
        yield from _indented(shown.sent.pretty or shown.sent.text)


def _attempt(item: ShownAttempt, shown: ShownDelivery, reader: TraceReader) -> Iterator[str]:
    attempt = item.attempt
    code = f" {attempt.status_code}" if attempt.status_code else ""
    noun = "fetch" if shown.is_fetched else "attempt"
    took = milliseconds(attempt.duration_ms)
    yield f"{noun} {attempt.number}  {exact(attempt.started_at)}  {attempt.outcome}{code}  {took}"
    if attempt.error:
        yield from _indented(attempt.error)
    if head := request_in(item, shown, reader):
        yield "  request (rebuilt from the current settings, without secrets):"
        yield from _indented(head, by=4)
    if item.answer and reader.may_see:
        yield "  response, its first 4 KiB:"
        yield from _indented(item.answer.pretty or item.answer.text, by=4)


def _rest(page: MessagePage, reader: TraceReader) -> Iterator[str]:
    reasons = page.reasons
    basis = f"as configured now: {reasons.as_now}" if reasons.as_now else "as configured then"
    yield from _title(f"Who received it, and why ({basis})")
    if reasons.too_many:
        yield "(not explained: too many subscriptions)"
    for row in reasons.rows:
        now = f" (now: {row.now})" if row.now else ""
        yield f"{'yes' if row.matched else 'no':<4}{row.subscription}: {row.reason}{now}"
    for shown in page.branches.callbacks:
        answer = f", answered by {shown.answer}" if shown.answer else ""
        yield f"callback of group {shown.callback.queue_group}: {shown.state}{answer}"
    yield from _title("Headers")
    for name, value in page.headers:
        yield f"{name}: {value if reader.may_see else MASKED}"
    yield from _title(f"Body, {page.body.size:,} bytes")
    yield from _indented(page.body.pretty or page.body.text, by=0) if reader.may_see else [_HIDDEN]


def _title(text: str) -> Iterator[str]:
    yield from ("", text, "-" * len(text))


def _indented(text: str, *, by: int = 2) -> Iterator[str]:
    for line in text.splitlines():
        yield " " * by + line
