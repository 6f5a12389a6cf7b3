"""The resource `subscriptions`: what subscribers want, and where it goes."""

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework import serializers

from subscriptions.api.pages import ById, Order
from subscriptions.api.resource import Resource
from subscriptions.api.strict import NameOf, Strict, StrictModel, Text
from subscriptions.api.subscription_fields import (
    AuthField,
    EndpointField,
    FilterField,
    HeadersField,
    check_addresses,
)
from subscriptions.header_values import HeaderError, check_auth
from subscriptions.models import (
    EventType,
    Mode,
    Policy,
    SigningSecret,
    Subscriber,
    Subscription,
    SubscriptionStatus,
)
from subscriptions.models.policy import DEFAULT_POLICY
from subscriptions.names import MAX_NAME_LENGTH

_FIXED = ("subscriber", "event_type")


class SubscriptionSerializer(StrictModel):
    """A subscription. Values of headers, passwords and tokens are masked in answers."""

    subscriber = NameOf(queryset=Subscriber.objects.all())
    event_type = NameOf(queryset=EventType.objects.all())
    policy = NameOf(queryset=Policy.objects.all(), required=False)
    endpoint = EndpointField(required=False, help_text="https://…, or with a method: PATCH:https://…")
    filter = FilterField(required=False)
    headers = HeadersField(required=False)
    auth = AuthField(required=False)

    class Meta:
        model = Subscription
        fields = [
            "id",
            "name",
            "subscriber",
            "event_type",
            "mode",
            "endpoint",
            "header_filter_string",
            "filter",
            "policy",
            "headers",
            "auth",
            "timeout_seconds",
            "status",
            "position",
            "created_at",
            "updated_at",
        ]
        read_only_fields = ["id"]
        # Two subscriptions of one name are a conflict (409), which the database finds.
        validators: ClassVar[list[Any]] = []
        extra_kwargs = {"name": {"validators": Subscription._meta.get_field("name").validators}}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        self._refuse_moving(attrs)
        if self.instance is None:
            attrs.setdefault("endpoint", "")
            attrs.setdefault("policy", Policy.objects.get(name=DEFAULT_POLICY))
        self._check_endpoint(attrs)
        self._check_credentials(attrs)
        return super().validate(attrs)

    def _refuse_moving(self, attrs: Mapping[str, Any]) -> None:
        moved = [
            name
            for name in _FIXED
            if self.instance is not None
            and attrs.get(name, getattr(self.instance, name)) != getattr(self.instance, name)
        ]
        if moved:
            reason = "Its deliveries belong to the old one; make a new subscription instead."
            raise serializers.ValidationError(dict.fromkeys(moved, reason))

    def _check_endpoint(self, attrs: Mapping[str, Any]) -> None:
        mode = attrs.get("mode", getattr(self.instance, "mode", Mode.PUSH))
        if mode == Mode.PUSH and not attrs.get("endpoint", getattr(self.instance, "endpoint", "")):
            raise serializers.ValidationError(
                {"endpoint": "A PUSH subscription needs an endpoint, https://…"}
            )

    def _check_credentials(self, attrs: Mapping[str, Any]) -> None:
        auth = attrs.get("auth", getattr(self.instance, "auth", {}))
        headers = attrs.get("headers", getattr(self.instance, "headers", {}))
        try:
            check_auth(auth, header_names=headers)
        except HeaderError as error:
            raise serializers.ValidationError({"auth": str(error)}) from None


class NewSubscriptionSerializer(SubscriptionSerializer):
    """What POST answers: with the first signing secret, this once."""

    secret = serializers.CharField(
        read_only=True, help_text="whsec_…, to verify webhook-signature with; shown once."
    )

    class Meta(SubscriptionSerializer.Meta):
        fields = [*SubscriptionSerializer.Meta.fields, "secret"]


class SubscriptionQuery(ById):
    """The query parameters of the list of subscriptions."""

    subscriber = Text(required=False, max_length=MAX_NAME_LENGTH)
    event_type = Text(required=False, max_length=MAX_NAME_LENGTH)
    status = serializers.ChoiceField(choices=SubscriptionStatus.choices, required=False)
    name = Text(required=False, max_length=MAX_NAME_LENGTH)


class SubscriptionViews(Resource):
    """Changing the status is left to `delivery.api`, which knows the backlog."""

    lookup_field = "pk"
    order = Order(column="id")
    query_classes: ClassVar[dict[str, type[Strict]]] = {"list": SubscriptionQuery}
    related = ("subscriber", "event_type", "policy")
    instead_of_deleting = "make it INACTIVE instead, which keeps its history"
    queryset = Subscription.objects.all()
    serializer_class: type[SubscriptionSerializer] = SubscriptionSerializer

    def get_serializer_class(self) -> type[SubscriptionSerializer]:
        return NewSubscriptionSerializer if self.action == "create" else self.serializer_class

    def selected(self, rows: Any) -> Any:
        columns = {
            "subscriber": "subscriber__name",
            "event_type": "event_type__name",
            "status": "status",
            "name": "name",
        }
        return rows.filter(**{columns[name]: value for name, value in self.query.items() if name in columns})

    def check_elsewhere(self, given: Any) -> None:
        check_addresses(given)

    def created(self, instance: Any) -> Mapping[str, Any]:
        instance.secret = SigningSecret.objects.create(subscription=instance).secret
        return super().created(instance)
