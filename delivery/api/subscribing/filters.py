"""Checking a filter before it is saved, against a sample or a given message."""

import json
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from delivery.api.base.strict import JSONValue, NameOf, Strict, Text
from delivery.api.base.views import ApiView
from subscriptions.filters import FilterError, document, parse_filter, to_python
from subscriptions.models import EventType


class CheckSerializer(Strict):
    """A filter and the message to test it on: an event type's sample, or a header and a body."""

    rules = {"not": {"required": ["event_type", "body"]}}
    filter = Text(max_length=None, allow_blank=True)
    event_type = NameOf(queryset=EventType.objects.all(), required=False)
    header = serializers.DictField(
        child=Text(allow_blank=True), required=False, help_text="Header names and values."
    )
    body = JSONValue(required=False, allow_null=True, help_text="The body, as JSON.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "event_type" in attrs and "body" in attrs:
            raise serializers.ValidationError(
                "Give event_type, whose sample is used, or a body; not both."
            )
        return attrs


class CheckedSerializer(serializers.Serializer[Any]):
    """The validity of a filter and the result; `result` is null without a message to test it on."""

    valid = serializers.BooleanField()
    error = serializers.CharField(allow_null=True, help_text="The error, and its correction.")
    line = serializers.IntegerField(allow_null=True)
    column = serializers.IntegerField(allow_null=True)
    result = serializers.BooleanField(allow_null=True)


class FilterCheckView(ApiView):
    @extend_schema(
        request=CheckSerializer, responses=CheckedSerializer, operation_id="filters_check"
    )
    def post(self, request: Request) -> Response:
        """Check whether a filter is valid, and whether it is true of a message."""
        check = CheckSerializer(data=request.data)
        check.is_valid(raise_exception=True)
        return Response(answer_to(check.validated_data))


def answer_to(question: Mapping[str, Any]) -> dict[str, Any]:
    answer = {"valid": True, "error": None, "line": None, "column": None, "result": None}
    try:
        matches = to_python(parse_filter(question["filter"]))
    except FilterError as error:
        return answer | {
            "valid": False,
            "error": error.message,
            "line": error.line,
            "column": error.column,
        }
    if {"event_type", "header", "body"} & set(question):
        answer["result"] = matches(document(question.get("header", {}), _body(question)))
    return answer


def _body(question: Mapping[str, Any]) -> bytes:
    if "body" in question:
        return json.dumps(question["body"]).encode()
    event_type: EventType | None = question.get("event_type")
    return (
        b""
        if event_type is None or event_type.sample is None
        else json.dumps(event_type.sample).encode()
    )
