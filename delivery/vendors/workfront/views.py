"""The API of Workfront's event subscriptions: create, list, read, delete, version.

They create ordinary subscriptions, which administrators see and change in the console and by
Inturn's API. Errors are problem documents, since Workfront's are not documented.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from delivery.api.base.authentication import KeyAuthentication, actor_of
from delivery.api.base.strict import Strict
from delivery.api.base.views import MANAGE, ApiView
from delivery.incoming.bodies import AnyJSONBody
from delivery.incoming.problems import Problem, invalid_field
from delivery.models import UrlHealth
from delivery.vendors.workfront import shapes, subscribing
from delivery.vendors.workfront.shapes import DocumentSerializer
from delivery.vendors.workfront.translate import OTHER_VERSION, VERSION
from subscriptions.models import WorkfrontSubscription

# The headers in which clients of Workfront send their credentials, in this order.
_HEADERS = ("HTTP_SESSIONID", "HTTP_X_USER_TOKEN", "HTTP_AUTHORIZATION")


class PageQuery(Strict):
    page = serializers.IntegerField(default=1, min_value=1, max_value=1_000_000)
    limit = serializers.IntegerField(default=100, min_value=1, max_value=1000)


class WorkfrontKey(KeyAuthentication):
    """A manage key in place of the apiKey or the session: bare, or as Bearer."""

    def authenticate(self, request: Request) -> Any:
        given = next((request.META[name] for name in _HEADERS if request.META.get(name)), "")
        scheme, blank, key = given.strip().partition(" ")
        if not given.strip():
            return None
        if blank and scheme.lower() != "bearer":
            raise AuthenticationFailed(
                "Send a manage key as Authorization, sessionID or X-User-Token."
            )
        return self.by_key(key.strip() if blank else scheme)


@extend_schema(exclude=True)
class WorkfrontViews(ApiView, ViewSet):
    required_scopes = MANAGE
    authentication_classes = [WorkfrontKey]
    parser_classes = [AnyJSONBody]
    http_method_names = ["get", "head", "post", "put", "delete"]
    query_classes: ClassVar[Mapping[str, type[Strict]]] = {"list": PageQuery}
    ignores_unknown_query = True

    def list(self, request: Request) -> Response:
        """List event subscriptions page by page, oldest first."""
        page, limit = self.query["page"], self.query["limit"]
        rows = _rows()
        total = rows.count()
        shown = _shown(rows[(page - 1) * limit : page * limit])
        meta = {
            "page": page,
            "page_count": -(-total // limit),
            "limit": limit,
            "total_count": total,
        }
        return Response({"subscriptions": shown, "meta": meta})

    def all(self, request: Request) -> Response:
        """List them like the deprecated call: all at once, with underscores in names."""
        return Response([shapes.with_underscores(row) for row in _shown(_rows())])

    def retrieve(self, request: Request, id: str) -> Response:
        """Read an event subscription."""
        return Response(_shown([_row(id)])[0])

    def create(self, request: Request) -> Response:
        """Create an event subscription; 409 if the same events go to the same URL already."""
        serializer = DocumentSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        made = subscribing.create_subscription(serializer.validated_data, actor=actor_of(request))
        base_url = settings.ENVIRONMENT.base_url
        place = f"{base_url}/attask/eventsubscription/api/v1/subscriptions/{made.row.pk}"
        answer: dict[str, Any] = {"id": str(made.row.pk), "version": VERSION}
        if made.differences:
            answer["differences"] = made.differences
        return Response(answer, status=201, headers={"Location": place})

    def put_version(self, request: Request, id: str) -> Response:
        """Accept the present version; another is refused, as Workfront refuses it."""
        _check_version(shapes.VersionSerializer(data=request.data))
        return Response(shapes.version_shown(_row(id)))

    def put_versions(self, request: Request) -> Response:
        """The same for several, or all; 404 for an unknown id."""
        given = _check_version(shapes.VersionsSerializer(data=request.data))
        rows = _rows()
        if "subscriptionIds" in given:
            found = rows.filter(pk__in=given["subscriptionIds"])
            known = {row.pk for row in found}
            for id in given["subscriptionIds"]:
                if id not in known:
                    raise _unknown(str(id))
            rows = found
        return Response(shapes.versions_shown(rows))

    def destroy(self, request: Request, id: str) -> HttpResponse:
        """Delete it.

        A subscription with a history stays, INACTIVE, in Inturn's own API and console.
        """
        subscribing.delete_subscription(_row(id), actor=actor_of(request))
        return HttpResponse(status=200)


def _rows() -> Any:
    related = ("subscription__event_type", "subscription__subscriber")
    return WorkfrontSubscription.objects.select_related(*related).order_by("subscription_id")


def _row(id: str) -> WorkfrontSubscription:
    try:
        found: WorkfrontSubscription | None = _rows().filter(pk=uuid.UUID(id)).first()
    except ValueError:
        found = None
    if found is None:
        raise _unknown(id)
    return found


def _unknown(id: str) -> Problem:
    return Problem(404, "not-found", f"There is no event subscription {id}.")


def _check_version(serializer: Strict) -> Mapping[str, Any]:
    serializer.is_valid(raise_exception=True)
    if serializer.validated_data["version"] != VERSION:
        raise invalid_field("version", OTHER_VERSION)
    given: Mapping[str, Any] = serializer.validated_data
    return given


def _shown(rows: Sequence[WorkfrontSubscription]) -> list[dict[str, Any]]:
    healths = UrlHealth.objects.in_bulk([row.subscription.endpoint for row in rows])
    return [shapes.shown_subscription(row, healths.get(row.subscription.endpoint)) for row in rows]
