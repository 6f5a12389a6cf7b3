"""The answers of a built-in receiver."""

from django.http import HttpResponse

from delivery.models import ReceiverAnswer
from delivery.receivers.late_answers import AFTER_HEADER, CLOSE

SLOW_SECONDS = 5
# Longer than any subscription waits.
HANG_SECONDS = 125
RETRY_AFTER_SECONDS = 10


def receiver_response(answer: ReceiverAnswer) -> HttpResponse:
    """Return the response of a receiver switched to this answer."""
    match answer:
        case ReceiverAnswer.OK:
            return HttpResponse(status=204)
        case ReceiverAnswer.GONE:
            return _said(410)
        case ReceiverAnswer.TOO_MANY:
            return _said(429, {"Retry-After": str(RETRY_AFTER_SECONDS)})
        case ReceiverAnswer.ERROR:
            return _said(500)
        case ReceiverAnswer.SLOW:
            return HttpResponse(status=204, headers={AFTER_HEADER: str(SLOW_SECONDS)})
        case ReceiverAnswer.HANG:
            return _said(503, {AFTER_HEADER: str(HANG_SECONDS)})
        case ReceiverAnswer.CLOSE:
            return _said(503, {AFTER_HEADER: CLOSE})


def _said(status: int, headers: dict[str, str] | None = None) -> HttpResponse:
    text = f"This built-in receiver of Inturn is switched to answer {status}.\n"
    return HttpResponse(text, status=status, content_type="text/plain", headers=headers)
