"""URL health: the state of URLs in the circuit breaker, and the release of a URL."""

from collections.abc import Mapping
from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from delivery.api.base.authentication import actor_of, key_of_request
from delivery.api.base.pages import DEFAULT_LIMIT, MAX_LIMIT, KeysetPages, PageOrder
from delivery.api.base.strict import Strict, Text
from delivery.api.base.views import MANAGE, READ, ApiView
from delivery.incoming.problems import Problem
from delivery.models import UrlHealth, UrlState
from delivery.support import release_url
from delivery.support.release_url import url_of
from subscriptions.models import Scope
from subscriptions.values.endpoints import MAX_ENDPOINT_LENGTH
from subscriptions.values.shown_addresses import masked_address, secret_address_key


class UrlHealthSerializer(serializers.ModelSerializer[UrlHealth]):
    """The health of an endpoint URL, over all subscriptions whose policy has `breaks_circuit`.

    DISABLED: nothing is sent except an attempt at `next_probe_at`. FROZEN: nothing is sent until a
    person releases it.
    """

    url = serializers.SerializerMethodField(
        help_text="For a read key its query and long parts of its path are masked."
    )
    url_key = serializers.SerializerMethodField(
        help_text="Names the URL where it is masked; `url-health/release` takes it, too."
    )
    state = serializers.ChoiceField(choices=UrlState.choices)
    attempts = serializers.IntegerField(help_text="Since it was last enabled.")
    failures = serializers.IntegerField(help_text="Of these attempts.")
    failures_in_row = serializers.IntegerField(help_text="Since the last success.")
    last_success_at = serializers.DateTimeField(
        help_text="Until its first success: when it was first tried."
    )

    class Meta:
        model = UrlHealth
        fields = [
            "url",
            "url_key",
            "state",
            "since",
            "attempts",
            "failures",
            "failures_in_row",
            "last_success_at",
            "next_probe_at",
        ]

    def get_url(self, health: UrlHealth) -> str:
        is_whole = key_of_request(self.context["request"]).scope == Scope.MANAGE
        return health.url if is_whole else masked_address(health.url)

    def get_url_key(self, health: UrlHealth) -> str:
        return secret_address_key(health.url)


class UrlHealthQuery(Strict):
    """The query parameters of the list of URLs."""

    limit = serializers.IntegerField(
        default=DEFAULT_LIMIT, min_value=1, max_value=MAX_LIMIT, help_text="How many."
    )
    after = Text(
        required=False,
        max_length=MAX_ENDPOINT_LENGTH,
        help_text="Set by `next`: the key of the URL to continue from.",
    )
    state = serializers.ChoiceField(choices=UrlState.choices, required=False)


class ReleaseSerializer(Strict):
    """The URL to release, or the URL's key."""

    url = Text(
        max_length=MAX_ENDPOINT_LENGTH,
        help_text="As it is listed: an endpoint without its method prefix; or its `url_key`, which "
        "`url-health`, `incidents` and the messages of incidents have.",
    )


class UrlPages(KeysetPages):
    """Pages whose `next` has the key of a URL.

    The URL itself is not accepted: a caller who sees it masked could find it out by comparisons.
    """

    def key_of(self, value: str) -> str:
        return secret_address_key(value)

    def value_of(self, key: str) -> str:
        url = "" if "://" in key else url_of(key)
        if not url:
            raise Problem(404, "not-found", "No URL has this key; begin with the first page.")
        return url


class UrlHealthViews(ApiView, GenericViewSet[UrlHealth]):
    order = PageOrder(column="url")
    pagination_class = UrlPages
    query_classes: ClassVar[Mapping[str, type[Strict]]] = {"list": UrlHealthQuery}
    queryset = UrlHealth.objects.all()
    serializer_class = UrlHealthSerializer

    @property
    def required_scopes(self) -> frozenset[str]:  # type: ignore[override]
        return MANAGE if self.action == "release" else READ

    def list(self, request: Request) -> Response:
        """List URLs tried under a policy with `breaks_circuit`."""
        rows = self.get_queryset()
        if "state" in self.query:
            rows = rows.filter(state=self.query["state"])
        return self.get_paginated_response(
            self.get_serializer(self.paginate_queryset(rows), many=True).data
        )

    @extend_schema(request=ReleaseSerializer, responses=UrlHealthSerializer)
    def release(self, request: Request) -> Response:
        """Enable a DISABLED or FROZEN URL, and reset the counts. 409 when it is ENABLED."""
        serializer = ReleaseSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        url = url_of(serializer.validated_data["url"])
        try:
            release_url.release_url(url, actor=actor_of(request))
        except UrlHealth.DoesNotExist:
            raise Problem(
                404, "not-found", "Nothing is known of that URL; GET url-health lists them."
            ) from None
        except release_url.NotStoppedError:
            raise Problem(
                409, "not-stopped", "The URL is ENABLED; there is nothing to release."
            ) from None
        return Response(self.get_serializer(UrlHealth.objects.get(pk=url)).data)
