"""`/receiver/{token}`: a built-in receiver, which shows the requests and answers as configured.

The token authorizes any request, of any method. Nothing is sent on anywhere.
"""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from delivery.incoming.bodies import read_body
from delivery.incoming.problems import Problem
from delivery.models import BuiltInReceiver, ReceiverAnswer
from delivery.receivers.answers import receiver_response
from delivery.receivers.stored_requests import ArrivedRequest, keep_request
from subscriptions.filters import header_name
from subscriptions.values.built_in_receivers import is_receiver_token


@csrf_exempt
def receive(request: HttpRequest, token: str) -> HttpResponse:
    """Store the request among the receiver's last requests, and answer as the receiver is switched.

    404 for an unknown token, 413 for a body longer than a message may be.
    """
    receiver = (
        BuiltInReceiver.objects.filter(token=token).first() if is_receiver_token(token) else None
    )
    if receiver is None:
        detail = "There is no such built-in receiver; the console lists those that there are."
        return Problem(404, "no-such-receiver", detail).response()
    try:
        body = read_body(request, max_bytes=settings.ENVIRONMENT.max_message_bytes)
    except Problem as refused:
        return refused.response()
    arrived = ArrivedRequest(method=request.method or "", headers=_headers(request), body=body)
    keep_request(receiver, arrived, now=timezone.now())
    return receiver_response(ReceiverAnswer(receiver.answer))


def _headers(request: HttpRequest) -> dict[str, str]:
    headers = {
        header_name(key.removeprefix("HTTP_")): _decoded(str(value))
        for key, value in request.META.items()
        if key.startswith("HTTP_")
    }
    for key in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if value := request.META.get(key):
            headers[header_name(key)] = _decoded(str(value))
    return headers


def _decoded(value: str) -> str:
    """Return a header's value, of which WSGI decodes the bytes as Latin-1."""
    return value.encode("latin-1", errors="replace").decode(errors="replace")
