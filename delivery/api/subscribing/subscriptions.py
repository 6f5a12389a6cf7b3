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
from delivery.api.base.strict import NameOf, Strict, StrictModel, Text
from delivery.api.holding import (
    TOGGLED,
    TOGGLING,
    BacklogField,
    HoldingFields,
    apply_status,
    check_holding,
    split_status,
)
from delivery.api.subscribing.moved_endpoint import refusals_of_body
from delivery.api.subscribing.subscription_fields import (
    AuthField,
    EndpointField,
    FilterField,
    HeadersField,
    PathField,
    PatternsField,
    ProbeField,
    ScriptField,
    check_addresses,
)
from delivery.incoming.problems import Problem
from delivery.models import EndpointState
from subscriptions.checks import dedup, default_destination, joins, mode, script
from subscriptions.checks.sync_overlap import conflicting_subscription, overlap_refusal
from subscriptions.checks.twins import twin_warning
from subscriptions.models import (
    DedupMode,
    EventType,
    JoinMode,
    Mode,
    Policy,
    SigningSecret,
    Subscriber,
    Subscription,
    SubscriptionStatus,
)
from subscriptions.models.policy import DEFAULT_POLICY
from subscriptions.values.header_values import HeaderError, check_auth
from subscriptions.values.names import MAX_NAME_LENGTH, validate_subscribable

_MOVED = "Its deliveries belong to the old one; create a new subscription instead."
_FIXED = {"subscriber": _MOVED, "event_type": _MOVED, "mode": mode.FIXED}


class SubscriptionFields(StrictModel):
    """The fields that a request, an entry of a document and a Workfront call set alike."""

    subscriber = NameOf(queryset=Subscriber.objects.all())
    event_type = NameOf(queryset=EventType.objects.all())
    policy = NameOf(queryset=Policy.objects.all(), required=False)
    endpoint = EndpointField(
        required=False,
        help_text="https://…, or with a method: PATCH:https://…; a PULL subscription has none. "
        "SYNC: webr:// when its script answers.",
    )
    filter = FilterField(required=False)
    script = ScriptField(
        required=False,
        help_text="TOPIC: turns each message into the request, $outmessage. SYNC with the endpoint "
        "webr://: makes the answer.",
    )
    headers = HeadersField(required=False)
    auth = AuthField(required=False)
    forward_headers = PatternsField(
        required=False,
        help_text="Which headers of a message are sent along: names, or beginnings with * at the "
        "end. Left out of a new subscription: those of its event type.",
    )
    probe_url = ProbeField(
        required=False,
        help_text="Called by GET while the lane is suspended; "
        "the lane resumes when the answer is 2xx.",
    )
    dedup_path = PathField(
        required=False,
        help_text="With dedup_mode PATH: path to the value that identifies a message, "
        "e.g. $$->'Body'->>'id'.",
    )
    join_path = PathField(
        required=False,
        help_text="Of a join: path to the activation id, e.g. $$->'Body'->>'order'. Empty: "
        "the header Activation.",
    )

    cancellation = serializers.IntegerField(
        source="cancellation_id",
        read_only=True,
        allow_null=True,
        help_text="The running cancellation of its backlog: "
        "nothing is sent until it has ended. null: none is running.",
    )

    class Meta:
        model = Subscription
        fields = [
            "id",
            "name",
            "description",
            "subscriber",
            "event_type",
            "mode",
            "endpoint",
            "header_filter_string",
            "filter",
            "script",
            "policy",
            "headers",
            "auth",
            "forward_headers",
            "forward_authorization",
            "timeout_seconds",
            "lets_pass_on_timeout",
            "probe_url",
            "dedup_mode",
            "dedup_path",
            "dedup_window_seconds",
            "join_mode",
            "join_name",
            "join_path",
            "join_seconds",
            "max_receives",
            "status",
            "cancellation",
            "takes_unmatched",
            "position",
            "created_at",
            "updated_at",
        ]
        read_only_fields = ["id"]
        # A duplicate name is a conflict (409), which the database finds.
        validators: ClassVar[list[Any]] = []
        extra_kwargs = {"name": {"validators": Subscription._meta.get_field("name").validators}}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        self._refuse_moving(attrs)
        if self.instance is None:
            attrs.setdefault("endpoint", "")
            if "policy" not in attrs:
                attrs["policy"] = Policy.objects.get(name=DEFAULT_POLICY)
            is_pull = attrs.get("mode") == Mode.PULL
            attrs.setdefault(
                "forward_headers", [] if is_pull else attrs["event_type"].forward_headers
            )
        row = Subscription(**attrs) if self.instance is None else self.instance
        self._check_mode(attrs, row)
        self._check_script(attrs, row)
        self._check_credentials(attrs)
        self._refuse_moved_credentials(attrs)
        self._check_dedup(attrs, row)
        self._check_join(attrs, row)
        if refused := default_destination.destination_refusals(attrs, event_type=row.event_type):
            raise serializers.ValidationError(refused)
        super().validate(attrs)
        self._refuse_sync_overlap(attrs)
        return attrs

    def validate_event_type(self, value: EventType) -> EventType:
        if self.instance is None:
            validate_subscribable(value.name)
        return value

    def _refuse_moving(self, attrs: Mapping[str, Any]) -> None:
        moved = {
            name: reason
            for name, reason in _FIXED.items()
            if self.instance is not None
            and attrs.get(name, getattr(self.instance, name)) != getattr(self.instance, name)
        }
        if moved:
            raise serializers.ValidationError(moved)

    def _check_mode(self, attrs: Mapping[str, Any], row: Subscription) -> None:
        """Check the new values against the mode; stored addresses were checked before.

        Only the stored endpoint is included, because a PUSH subscription must keep an endpoint.
        """
        values = {"mode": row.mode, "endpoint": row.endpoint} | dict(attrs)
        if refused := mode.mode_refusals(values, event_type=row.event_type):
            raise serializers.ValidationError(refused)

    def _check_script(self, attrs: Mapping[str, Any], row: Subscription) -> None:
        values = {name: attrs.get(name, getattr(row, name)) for name in ("endpoint", "script")}
        if refused := script.script_refusals(values, event_type=row.event_type):
            raise serializers.ValidationError(refused)

    def _check_credentials(self, attrs: Mapping[str, Any]) -> None:
        auth = attrs.get("auth", getattr(self.instance, "auth", {}))
        headers = attrs.get("headers", getattr(self.instance, "headers", {}))
        forwards = attrs.get(
            "forward_authorization", getattr(self.instance, "forward_authorization", False)
        )
        try:
            check_auth(auth, header_names=headers, forwards=forwards)
        except HeaderError as error:
            raise serializers.ValidationError({"auth": str(error)}) from None

    def _refuse_moved_credentials(self, attrs: Mapping[str, Any]) -> None:
        if refused := refusals_of_body(self.instance, attrs, body=self.initial_data):
            raise serializers.ValidationError(refused)

    def _check_dedup(self, attrs: dict[str, Any], row: Subscription) -> None:
        if attrs.get("dedup_mode", DedupMode.PATH) != DedupMode.PATH:
            # Leaving PATH also clears the path, so callers need not.
            attrs.setdefault("dedup_path", "")
        values = {
            name: attrs.get(name, getattr(row, name)) for name in ("dedup_mode", "dedup_path")
        }
        if refused := dedup.dedup_refusals(values, event_type=row.event_type):
            raise serializers.ValidationError(refused)

    def _check_join(self, attrs: dict[str, Any], row: Subscription) -> None:
        if attrs.get("join_mode") == JoinMode.NONE:
            # As with PATH: leaving a join clears the rest.
            attrs |= {name: attrs.get(name, "") for name in ("join_name", "join_path")}
        values = {
            name: attrs.get(name, getattr(row, name))
            for name in ("join_mode", "join_name", "join_path", "mode")
        }
        if refused := joins.join_refusals(values, event_type=row.event_type):
            raise serializers.ValidationError(refused)

    def _refuse_sync_overlap(self, attrs: Mapping[str, Any]) -> None:
        """Refuse a conflict; last, because it locks the event type: see `checks.sync_overlap`."""
        if self.instance is not None and not {"filter", "header_filter_string"} & set(attrs):
            return
        row = Subscription(**attrs) if self.instance is None else self.instance
        other = conflicting_subscription(
            row.event_type,
            header_filter_string=attrs.get("header_filter_string", row.header_filter_string),
            filter_text=attrs.get("filter", row.filter),
            excluding=row,
        )
        if other is not None:
            raise Problem(409, "same-filter", overlap_refusal(other), other=other.pk)


class SubscriptionSerializer(HoldingFields, SubscriptionFields):
    """A subscription. Values of headers, passwords and tokens are masked in answers.

    Its mode cannot be changed. Fields that only concern sending have no effect on a PULL
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
        subscription: Subscription = super().create(written)
        # The toggle writes a journal entry, so the waiting deliveries have a reason.
        apply_status(subscription, toggled, actor=actor_of(self.context["request"]))
        return subscription


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

        If the subscriber has another one for the same messages, the header `Inturn-Warning` says
        so.
        """
        return _warned(super().create(request, **place))

    def partial_update(self, request: Request, **place: str) -> Response:
        """Change the fields that are given.

        `status: HELD` makes the subscription's deliveries wait, including those of messages
        published meanwhile. `status: SHADOW` records each match as a delivery with the status
        SHADOW, and sends none; earlier deliveries wait. `status: INACTIVE` holds its deliveries,
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
        check_addresses(data)

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
