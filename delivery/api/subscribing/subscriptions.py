"""The resource `subscriptions`: the messages that subscribers request, and their endpoints."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from delivery.api.base.authentication import actor_of
from delivery.api.base.pages import ById, PageOrder
from delivery.api.base.resource import Resource
from delivery.api.base.strict import (
    NameOf,
    Strict,
    StrictModel,
    Text,
    configured_fields,
    refused_fields,
)
from delivery.api.holding import (
    TOGGLED,
    TOGGLING,
    BacklogField,
    HoldingFields,
    apply_status,
    check_holding,
    split_status,
)
from delivery.api.subscribing.subscription_fields import (
    AuthField,
    HeadersField,
    PatternsField,
    ProbeField,
)
from delivery.incoming.problems import Problem
from delivery.models import EndpointState
from subscriptions.changes import MASKED
from subscriptions.checks import subscription
from subscriptions.checks.addresses import address_refusals
from subscriptions.checks.moved_endpoint import SECRET_PARTS, kept_credentials, moved_refusals
from subscriptions.checks.sync_overlap import conflicting_subscription, overlap_refusal
from subscriptions.checks.twins import twin_warning
from subscriptions.models import (
    EventType,
    Mode,
    Policy,
    SigningSecret,
    Subscriber,
    Subscription,
    SubscriptionStatus,
)
from subscriptions.values.names import MAX_NAME_LENGTH


class SubscriptionFields(StrictModel):
    """The fields that a request, an entry of a document and a Workfront call set alike."""

    subscriber = NameOf(queryset=Subscriber.objects.all())
    event_type = NameOf(queryset=EventType.objects.all())
    policy = NameOf(queryset=Policy.objects.all(), required=False)
    cancellation = serializers.IntegerField(
        source="cancellation_id",
        read_only=True,
        allow_null=True,
        help_text=Subscription._meta.get_field("cancellation_id").help_text,
    )

    field_classes: ClassVar[Mapping[str, Any]] = {
        "headers": HeadersField,
        "auth": AuthField,
        "forward_headers": PatternsField,
        "probe_url": ProbeField,
    }

    class Meta:
        model = Subscription
        fields = [
            "id",
            *configured_fields(Subscription),
            "cancellation",
            "created_at",
            "updated_at",
        ]
        # A duplicate name is a conflict (409), which the database finds.
        validators: ClassVar[list[Any]] = []
        # Parser and engine have limits of their own, with better messages.
        extra_kwargs: ClassVar[dict[str, Any]] = {
            "filter": {"max_length": None},
            "script": {"max_length": None},
        }

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(subscription.completed(attrs, stored=self.instance))
        self._refuse_moved_credentials(attrs)
        self._refuse_sync_overlap(attrs)
        return attrs

    def refusals(self, attrs: Mapping[str, Any]) -> Mapping[str, str]:
        common = self.context.get("common")
        return subscription.refusals(attrs, stored=self.instance, common=common)

    def _refuse_moved_credentials(self, attrs: Mapping[str, Any]) -> None:
        if refused := _refusals_of_body(self.instance, attrs, body=self.initial_data):
            raise serializers.ValidationError(refused)

    def _refuse_sync_overlap(self, attrs: Mapping[str, Any]) -> None:
        """Refuse a conflict; last, because it locks the event type: see `checks.sync_overlap`."""
        other = conflicting_subscription(attrs, stored=self.instance)
        if other is not None:
            raise Problem(409, "same-filter", overlap_refusal(other), other=other.pk)


class SubscriptionSerializer(HoldingFields, SubscriptionFields):
    """A subscription. Values of headers, passwords and tokens are masked in answers.

    The mode cannot be changed. Fields that only concern sending have no effect on a PULL
    subscription, so it may have only their defaults.
    """

    endpoint_state = serializers.ChoiceField(
        choices=EndpointState.choices,
        source="endpoint_summary.state",
        read_only=True,
        allow_null=True,
        help_text=(
            "DOWN: it failed and waits for its next try. DISABLED, FROZEN: its URL is stopped, "
            "see GET url-health. Null for a PULL subscription."
        ),
    )

    class Meta(SubscriptionFields.Meta):
        fields = [*SubscriptionFields.Meta.fields, "until", "catch_up_rate", "endpoint_state"]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        check_holding(attrs, now=timezone.now(), status="status")
        return super().validate(attrs)


class NewSubscriptionSerializer(SubscriptionSerializer):
    """The answer to POST, with the first signing secret, shown once.

    Null for a PULL subscription.
    """

    secret = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="whsec_…, to verify webhook-signature with; shown once. "
        "Null of a PULL subscription.",
    )

    class Meta(SubscriptionSerializer.Meta):
        fields = [*SubscriptionSerializer.Meta.fields, "secret"]

    def create(self, validated_data: dict[str, Any]) -> Subscription:
        is_held = validated_data.get("status") == SubscriptionStatus.HELD
        written, toggled = split_status(validated_data) if is_held else (validated_data, {})
        row: Subscription = super().create(written)
        # The toggle writes a journal entry, so the waiting deliveries have a reason.
        apply_status(row, toggled, actor=actor_of(self.context["request"]))
        return row


class SubscriptionChangeSerializer(SubscriptionSerializer):
    """A change of a subscription.

    With `status: ACTIVE`, `backlog` decides whether waiting deliveries are delivered or cancelled.
    """

    backlog = BacklogField()

    class Meta(SubscriptionSerializer.Meta):
        fields = [*SubscriptionSerializer.Meta.fields, "backlog"]

    def update(self, instance: Subscription, validated_data: dict[str, Any]) -> Subscription:
        written, toggled = split_status(validated_data)
        super().update(instance, written)
        apply_status(instance, toggled, actor=actor_of(self.context["request"]))
        instance.refresh_from_db(fields=[*TOGGLED, "updated_at", "cancellation_id"])
        return instance


class SubscriptionQuery(ById):
    """The query parameters of the list of subscriptions."""

    subscriber = Text(required=False, max_length=MAX_NAME_LENGTH)
    event_type = Text(required=False, max_length=MAX_NAME_LENGTH)
    status = serializers.ChoiceField(choices=SubscriptionStatus.choices, required=False)
    name = Text(required=False, max_length=MAX_NAME_LENGTH)


class SubscriptionViews(Resource):
    """Subscriptions whose status can be changed, with the state of their endpoints."""

    lookup_field = "pk"
    order = PageOrder(column="id")
    query_classes: ClassVar[dict[str, type[Strict]]] = {"list": SubscriptionQuery}
    related = ("subscriber", "event_type", "policy")
    instead_of_deleting = "make it INACTIVE instead, which keeps its history"
    queryset = Subscription.objects.all()
    serializer_class: type[SubscriptionSerializer] = SubscriptionSerializer

    def get_queryset(self) -> QuerySet[Subscription]:
        rows = super().get_queryset()
        # For a change the summary is loaded after it.
        return (
            rows.select_related("endpoint_summary") if self.action in ("list", "retrieve") else rows
        )

    def create(self, request: Request, **place: str) -> Response:
        """Create one; 409 when the name is in use.

        If the subscriber has another subscription for the same messages, the header
        `Inturn-Warning` says so.
        """
        return _warned(super().create(request, **place))

    def partial_update(self, request: Request, **place: str) -> Response:
        """Change the given fields.

        `status: HELD` makes the subscription's deliveries wait, including those of messages
        published meanwhile. `status: SHADOW` records each match as a delivery with the status
        SHADOW, and sends none; earlier deliveries wait. `status: INACTIVE` holds the deliveries,
        and messages published while a subscription is INACTIVE are not kept for it. `status:
        ACTIVE` delivers the backlog in order, or cancels it: see `backlog`. If the subscriber has
        another subscription for the same messages, the header `Inturn-Warning` says so.
        """
        return _warned(super().partial_update(request, **place))

    def get_serializer_class(self) -> type[SubscriptionSerializer]:
        own = {
            "create": NewSubscriptionSerializer,
            "partial_update": SubscriptionChangeSerializer,
        }
        return own.get(self.action, self.serializer_class)

    def snapshot(self, instance: Subscription) -> dict[str, Any]:
        values = super().snapshot(instance)
        if self.action == "partial_update":
            return {name: value for name, value in values.items() if name not in TOGGLED}
        return values

    def record(self, action: str, instance: Any, **states: Any) -> None:
        if action != "changed" or _is_more_than_toggled(self.request):
            super().record(action, instance, **states)

    def selected(self, rows: Any) -> Any:
        columns = {
            "subscriber": "subscriber__name",
            "event_type": "event_type__name",
            "status": "status",
            "name": "name",
        }
        return rows.filter(
            **{columns[name]: value for name, value in self.query.items() if name in columns}
        )

    def check_elsewhere(self, data: Any) -> None:
        if isinstance(data, Mapping) and (refused := address_refusals(data)):
            raise refused_fields(refused)

    def created(self, instance: Any) -> Mapping[str, Any]:
        is_signed = instance.mode == Mode.PUSH
        instance.secret = (
            SigningSecret.objects.create(subscription=instance).secret if is_signed else None
        )
        return super().created(instance)


def _is_more_than_toggled(request: Request) -> bool:
    return bool(set(request.data) - TOGGLING)


def _warned(answer: Response) -> Response:
    row = Subscription.objects.select_related("subscriber", "event_type").get(pk=answer.data["id"])
    if warning := twin_warning(row):
        answer["Inturn-Warning"] = warning
    return answer


def _refusals_of_body(
    row: Subscription | None, values: Mapping[str, Any], *, body: Mapping[str, Any]
) -> dict[str, str]:
    """Return field → reason if a server newly gets credentials missing in the body.

    A masked value and an omitted field keep the stored values. Without a row it is created.
    """
    row = row or Subscription(subscriber=values["subscriber"])
    auth, headers = body.get("auth"), values.get("headers", row.headers or {})
    given = body.get("headers")
    kept = kept_credentials(
        row,
        values,
        is_auth_kept=auth is None or any(auth.get(part) == MASKED for part in SECRET_PARTS),
        kept=[name for name in headers if given is None or given.get(name) == MASKED],
    )
    return moved_refusals(row, values.get("endpoint", row.endpoint), kept)
