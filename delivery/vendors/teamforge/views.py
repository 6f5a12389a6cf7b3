"""TeamForge's publish addresses: clients publish to Inturn unchanged.

A message is published as by `delivery.api.publish`, with the same checks, limits and order; only
the authentication and the format of the answer differ. The publish id in the URL is a credential:
the path is masked before any code that may log it, and headers with it are not stored.
"""

from dataclasses import replace
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from delivery.api.base.views import ApiView
from delivery.api.publish import publish_draft
from delivery.incoming.bodies import parse_json, read_body
from delivery.incoming.drafting import draft_of_request
from delivery.incoming.problems import Problem
from delivery.publishing.drafts import Draft
from delivery.vendors.teamforge.envelope import answer_in_envelope, refusal_in_envelope
from delivery.vendors.teamforge.sessions import log_in, publisher_of_session
from subscriptions.changes import MASKED
from subscriptions.models import EventType, Publisher
from subscriptions.publish_ids import publisher_of_id
from subscriptions.values.client_address import client_address
from subscriptions.values.media_types import is_json
from subscriptions.values.names import is_name

# The path segment for clients whose only credential is the publish id.
_VERSION = "v4"
_LONGEST_LOGIN = 16 * 1024
_NO_ADDRESS = "A publish address ends in /inbox/{eventName}/{publisherId}, and nothing follows."
_NO_PUBLISHER = (
    "No publisher has this publish id: it is wrong, was replaced or was switched off. "
    "The publisher's page shows its ids."
)


class TeamForgeView(ApiView):
    """Body or URL authenticate the caller; errors have the envelope."""

    authentication_classes = []
    permission_classes = []
    http_method_names = ["post"]
    ignores_unknown_query = True

    def get_exception_handler(self) -> Any:
        return refusal_in_envelope

    def get_authenticate_header(self, request: Request) -> str:
        """Return a challenge: without it the framework answers 403 to an unknown publisher."""
        return 'Bearer realm="inturn"'


@extend_schema(exclude=True)
class LoginView(TeamForgeView):
    def post(self, request: Request, prefix: str) -> HttpResponse:
        """Return a session token for the name of a publisher and a key of it."""
        given = parse_json(read_body(request._request, max_bytes=_LONGEST_LOGIN))
        fields = given if isinstance(given, dict) else {}
        username, password = fields.get("Username"), fields.get("Password")
        if not isinstance(username, str) or not isinstance(password, str):
            raise Problem(400, "invalid", 'Send {"Username": "…", "Password": "…"}, both text.')
        address = client_address(request._request)
        token = log_in(username, password, address=address, now=timezone.now())
        return answer_in_envelope(HTTPStatus.OK, {"SessionToken": token})


@extend_schema(exclude=True)
class InboxView(TeamForgeView):
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        _mask_path(request, kwargs["publish_id"])
        return super().dispatch(request, *args, **kwargs)

    def post(self, request: Request, prefix: str, event_type: str, publish_id: str) -> HttpResponse:
        """Publish the body: 201 in the envelope.

        For a SYNC event type return the endpoint's answer, unchanged.
        """
        publisher = _publisher(request, publish_id, is_by_id=_VERSION in prefix.split("/"))
        draft = draft_of_request(publisher, _known(event_type), request._request)
        published = publish_draft(publisher, _readable(_without(draft, publish_id)), request.META)
        if isinstance(published, HttpResponse):
            return published
        content = {"MessageID": published.message_id, "Deliveries": published.deliveries}
        return answer_in_envelope(HTTPStatus.CREATED, content)


@extend_schema(exclude=True)
class NoInboxView(TeamForgeView):
    """Answers below `inbox` where no publish address is. The path may contain a publish id."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        _show_path(request, f"{request.path.removesuffix(kwargs['rest'])}/{MASKED}")
        return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise Problem(404, "no-such-address", _NO_ADDRESS)


def _publisher(request: Request, publish_id: str, *, is_by_id: bool) -> Publisher:
    """Return the publisher of the id.

    It must have logged in, unless by the URL the id is enough.
    """
    logged_in = (
        None if is_by_id else publisher_of_session(request.META.get("HTTP_AUTHORIZATION", ""))
    )
    publisher = publisher_of_id(publish_id, now=timezone.now())
    if publisher is None:
        raise Problem(404, "no-such-publish-id", _NO_PUBLISHER)
    if logged_in is not None and logged_in.pk != publisher.pk:
        detail = f"The publish id is another publisher's than {logged_in.name}, who logged in."
        raise Problem(403, "not-allowed", detail)
    return publisher


def _known(name: str) -> str:
    """Return the name of an event type.

    Raise Problem, with the right name if only the case differs.
    """
    if is_name(name):
        names = EventType.objects.filter(name__iexact=name).values_list("name", flat=True)
        if name in names or not names:
            return name
        detail = (
            f"There is no event type {name}, but there is {names[0]}: upper and lower case count."
        )
        raise Problem(404, "no-such-event-type", detail)
    raise Problem(404, "no-such-event-type", "This is not the name of an event type.")


def _without(draft: Draft, publish_id: str) -> Draft:
    """Leave out headers with the id, such as Referer."""
    kept = {name: value for name, value in draft.headers.items() if publish_id not in value}
    return draft if len(kept) == len(draft.headers) else replace(draft, headers=kept)


def _readable(draft: Draft) -> Draft:
    """Return JSON as UTF-8.

    The vendor's Jenkins plugin declares JSON but encodes it as ISO-8859-1.
    """
    if not is_json(draft.content_type) or _is_utf_8(draft.body):
        return draft
    return replace(draft, body=draft.body.decode("iso-8859-1").encode())


def _is_utf_8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _mask_path(request: HttpRequest, publish_id: str) -> None:
    _show_path(request, request.path.replace(publish_id, MASKED))


def _show_path(request: HttpRequest, path: str) -> None:
    request.path = request.path_info = path
    request.META["PATH_INFO"] = path
