"""The resources of keys: those of publishers and subscribers, and those to read and manage."""

from typing import Any, ClassVar

from django.db import transaction
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from delivery.api.base.pages import ById, PageOrder
from delivery.api.base.resource import Resource
from delivery.api.base.strict import Moment, NameOf, Strict, Text
from subscriptions import changes
from subscriptions.models import ApiKey, Publisher, Scope, Subscriber
from subscriptions.models.api_key import new_key
from subscriptions.models.named_object import Named

ACCESS_SCOPES = [(scope.value, scope.label) for scope in (Scope.READ, Scope.MANAGE)]


class KeySerializer(Strict):
    """A key. `key` itself is in the answer to POST and never again.

    `hint` is the last characters of the key.
    """

    id = serializers.IntegerField(read_only=True)
    name = Text(max_length=200, default="", allow_blank=True, help_text="What it is for.")
    scope = serializers.ChoiceField(choices=Scope.choices, read_only=True)
    hint = serializers.CharField(read_only=True)
    created_at = serializers.DateTimeField(read_only=True)
    expires_at = Moment(default=None, allow_null=True)
    revoked_at = serializers.DateTimeField(read_only=True, allow_null=True)
    last_used_at = serializers.DateTimeField(
        read_only=True, allow_null=True, help_text="To the minute."
    )

    def validate_expires_at(self, value: Any) -> Any:
        if value is not None and value <= timezone.now():
            raise serializers.ValidationError(
                "This time is in the past; give a future one, or null for never."
            )
        return value

    def create(self, validated_data: dict[str, Any]) -> ApiKey:
        text = new_key()
        key = ApiKey(**validated_data)
        key.set_key(text)
        key.save()
        # Only on the object for the answer: the text is stored nowhere.
        key.key = text  # type: ignore[attr-defined]
        return key


class NewKeySerializer(KeySerializer):
    key = serializers.CharField(
        read_only=True, help_text="Shown only now; only its hash is stored."
    )


def _limit(model: type[Named]) -> NameOf:
    return NameOf(queryset=model._default_manager.all(), default=None, allow_null=True)


class AccessKeySerializer(KeySerializer):
    """A key to read or manage. `publisher` or `subscriber` limits a read key to one of these.

    It then reads the messages and deliveries of the publisher, or the deliveries and the lane of
    the subscriber, and nothing else.
    """

    scope = serializers.ChoiceField(choices=ACCESS_SCOPES)
    publisher = _limit(Publisher)
    subscriber = _limit(Subscriber)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        given = [name for name in ("publisher", "subscriber") if attrs.get(name)]
        if given and attrs["scope"] != Scope.READ:
            raise serializers.ValidationError({given[0]: "Only a read key can be limited."})
        if len(given) > 1:
            detail = "A key is limited to one publisher or to one subscriber."
            raise serializers.ValidationError({"subscriber": detail})
        return attrs


class NewAccessKeySerializer(AccessKeySerializer):
    key = serializers.CharField(
        read_only=True, help_text="Shown only now; only its hash is stored."
    )


class KeyViews(Resource):
    """Keys are not changed, and revoked rather than deleted, so that past access stays visible."""

    lookup_field = "pk"
    order = PageOrder(column="id", newest_first=True)
    query_classes: ClassVar[dict[str, type[Strict]]] = {"list": ById}
    queryset = ApiKey.objects.all()
    serializer_class = KeySerializer
    new_serializer_class: type[KeySerializer] = NewKeySerializer

    def get_serializer_class(self) -> type[KeySerializer]:
        return self.new_serializer_class if self.action == "create" else self.serializer_class

    def destroy(self, request: Request, **place: str) -> Response:
        """Revoke it from now on; it stays in the list."""
        with transaction.atomic():
            key: ApiKey = self.locked()
            if key.revoked_at is None:
                before = changes.snapshot(key)
                key.revoked_at = timezone.now()
                key.save(update_fields=["revoked_at"])
                self.record("revoked", key, before=before, after=changes.snapshot(key))
        return Response(status=204)


class OwnedKeyViews(KeyViews):
    """The keys of a publisher or subscriber, named in the address."""

    owner_model: ClassVar[type[Named]]
    owner_field: ClassVar[str]
    scope: ClassVar[Scope]
    owner: Named | None = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.owner = get_object_or_404(self.owner_model._default_manager, name=kwargs["owner"])

    def get_queryset(self) -> QuerySet[ApiKey]:
        return super().get_queryset().filter(**{self.owner_field: self.owner})

    def fixed_values(self) -> dict[str, Any]:
        return {"scope": self.scope, self.owner_field: self.owner}


class PublisherKeyViews(OwnedKeyViews):
    owner_model = Publisher
    owner_field = "publisher"
    scope = Scope.PUBLISH


class SubscriberKeyViews(OwnedKeyViews):
    owner_model = Subscriber
    owner_field = "subscriber"
    scope = Scope.FETCH


class AccessKeyViews(KeyViews):
    """The keys of scope read and manage, which have no owner."""

    queryset = ApiKey.objects.filter(scope__in=[Scope.READ, Scope.MANAGE])
    related = ("publisher", "subscriber")
    serializer_class = AccessKeySerializer
    new_serializer_class = NewAccessKeySerializer
