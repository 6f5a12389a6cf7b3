"""The resource of a publisher's TeamForge publish ids."""

from collections.abc import Mapping
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
from delivery.api.base.strict import Strict, Text
from delivery.incoming.problems import Problem
from subscriptions import changes
from subscriptions.models import Publisher, PublishId
from subscriptions.publish_ids import (
    MAX_LENGTH,
    PublishIdRefusedError,
    check_text,
    end_publish_id,
    publish_addresses,
    rotate_publish_id,
)


class PublishIdSerializer(Strict):
    """A publish id of TeamForge's addresses; `hint` is the last characters of the id."""

    id = serializers.IntegerField(read_only=True)
    hint = serializers.CharField(read_only=True)
    created_at = serializers.DateTimeField(read_only=True)
    expires_at = serializers.DateTimeField(read_only=True, allow_null=True)
    last_used_at = serializers.DateTimeField(
        read_only=True, allow_null=True, help_text="To the minute."
    )


class NewPublishIdSerializer(PublishIdSerializer):
    """The body of POST and the answer, in which the id and the addresses are shown once."""

    publish_id = Text(
        required=False,
        max_length=MAX_LENGTH,
        help_text="The id that the publisher had in TeamForge, so that its addresses stay; "
        "left out, one is made.",
    )
    addresses = serializers.ListField(child=serializers.CharField(), read_only=True)

    def validate_publish_id(self, value: str) -> str:
        try:
            check_text(value)
        except PublishIdRefusedError as refused:
            raise serializers.ValidationError(str(refused)) from None
        return value

    def create(self, validated_data: dict[str, Any]) -> PublishId:
        publisher = Publisher.objects.select_for_update(no_key=True).get(
            pk=validated_data["publisher"].pk
        )
        try:
            made, text = rotate_publish_id(
                publisher, text=validated_data.get("publish_id", ""), now=timezone.now()
            )
        except PublishIdRefusedError as refused:
            raise Problem(409, "in-use", str(refused)) from None
        # Only on the object for the answer: they are stored nowhere.
        made.publish_id = text  # type: ignore[attr-defined]
        made.addresses = publish_addresses(text)  # type: ignore[attr-defined]
        return made


class PublishIdViews(Resource):
    """Creating an id ends the others after 24 hours.

    Deleting an id ends it at once, and it stays listed.
    """

    lookup_field = "pk"
    order = PageOrder(column="id", newest_first=True)
    query_classes: ClassVar[Mapping[str, type[Strict]]] = {"list": ById}
    queryset = PublishId.objects.select_related("publisher")
    serializer_class = PublishIdSerializer
    owner: Publisher | None = None

    def get_serializer_class(self) -> type[PublishIdSerializer]:
        return NewPublishIdSerializer if self.action == "create" else self.serializer_class

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.owner = get_object_or_404(Publisher, name=kwargs["owner"])

    def get_queryset(self) -> QuerySet[PublishId]:
        return super().get_queryset().filter(publisher=self.owner)

    def fixed_values(self) -> dict[str, Any]:
        return {"publisher": self.owner}

    def destroy(self, request: Request, **place: str) -> Response:
        """Revoke it now: the addresses answer 400."""
        with transaction.atomic():
            row: PublishId = self.locked()
            before = changes.snapshot(row)
            if end_publish_id(row, now=timezone.now()):
                row.refresh_from_db()
                self.record("ended", row, before=before, after=changes.snapshot(row))
        return Response(status=204)
