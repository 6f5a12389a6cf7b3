"""Trying a script of a subscription on a message before it is saved."""

import json
from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from delivery.api.base.strict import JSONValue, Strict, Text
from delivery.api.base.views import ApiView
from delivery.calls.script_trial import TriedScript, try_script
from delivery.calls.slots import NoSlotError
from delivery.calls.trial import Trial
from delivery.incoming.problems import Problem, invalid_field
from delivery.models import Message
from delivery.models.message import parse_public_id
from subscriptions.checks.subscription import script_contradictions
from subscriptions.filters import header_name
from subscriptions.models import Kind, Mode, Subscription
from subscriptions.values.endpoints import INTERNAL
from subscriptions.values.media_types import is_json

BUSY_SECONDS = 2
_ONE = (
    "Give message, which has its own headers, or body and headers; "
    "without either the sample is used."
)


class ScriptTrialSerializer(Strict):
    """A script and a message to try it on.

    The script is by default the stored script. The message is a stored message, another body, or
    the event type's sample.
    """

    rules = {"not": {"anyOf": [{"required": ["message", other]} for other in ("body", "headers")]}}
    script = Text(
        max_length=None,
        required=False,
        help_text="The script as written; by default the stored one.",
    )
    message = Text(
        required=False, max_length=30, help_text="The id of a message of the event type."
    )
    body = JSONValue(
        required=False,
        allow_null=True,
        help_text="The body: any JSON, or a text if the event type's content type is not JSON.",
    )
    headers = serializers.DictField(
        child=Text(allow_blank=True),
        required=False,
        help_text="Headers of the message, beside sample and body.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "message" in attrs and {"body", "headers"} & set(attrs):
            raise serializers.ValidationError(_ONE)
        return attrs


class TriedScriptSerializer(serializers.Serializer[Any]):
    """The request that would be sent, or a SYNC subscription's answer; with an `error` neither."""

    error = serializers.CharField(allow_null=True, help_text="Why the script has no output.")
    line = serializers.IntegerField(allow_null=True)
    column = serializers.IntegerField(allow_null=True)
    body = serializers.CharField(
        allow_null=True,
        help_text="$outmessage; null: it was not set, and a request has the message's own bytes.",
    )
    content_type = serializers.CharField(allow_null=True)
    headers = serializers.DictField(child=serializers.CharField(), help_text="$outheader.")
    path = serializers.CharField(help_text="$param as the end of the endpoint's path.")
    status_code = serializers.IntegerField(allow_null=True, help_text="SYNC: $statuscode.")
    warnings = serializers.ListField(
        child=serializers.CharField(),
        help_text="Values of the message that $inmessage cannot keep; $intext has them.",
    )


class ScriptTrialView(ApiView):
    @extend_schema(
        request=ScriptTrialSerializer,
        responses=TriedScriptSerializer,
        operation_id="subscriptions_try",
    )
    def post(self, request: Request, pk: str) -> Response:
        """Execute a script on a message; nothing is stored or sent."""
        rows = Subscription.objects.select_related("event_type").defer("headers", "auth")
        subscription = get_object_or_404(rows, pk=pk)
        wanted = ScriptTrialSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        script = _script(subscription, wanted.validated_data)
        trial = _trial(subscription, wanted.validated_data)
        try:
            tried = try_script(script, trial, is_sync=subscription.event_type.kind == Kind.SYNC)
        except NoSlotError:
            raise _busy() from None
        return Response(_shown(tried))


def _script(subscription: Subscription, given: dict[str, Any]) -> str:
    script: str = given.get("script", subscription.script)
    if not script:
        raise invalid_field("script", "The subscription has no script; give the one to try.")
    if subscription.mode == Mode.PULL:
        raise invalid_field("script", "A PULL subscription has no script: nothing is sent to it.")
    # Somebody may try the answer before the endpoint is changed to webr://.
    endpoint = INTERNAL if subscription.event_type.kind == Kind.SYNC else subscription.endpoint
    values = {"endpoint": endpoint, "script": script}
    for field, reason in script_contradictions(values, event_type=subscription.event_type):
        raise invalid_field(field, reason)
    return script


def _trial(subscription: Subscription, given: dict[str, Any]) -> Trial:
    if "message" in given:
        return _of_message(subscription, given["message"])
    headers = {header_name(name): value for name, value in given.get("headers", {}).items()}
    content_type = subscription.event_type.content_type
    if "body" in given:
        return Trial(
            content_type=content_type, body=_body(given["body"], content_type), headers=headers
        )
    sample = subscription.event_type.sample
    if sample is None:
        raise invalid_field(
            "body", f"{subscription.event_type} has no sample; give a body or a message."
        )
    return Trial(content_type=content_type, body=_json(sample), headers=headers)


def _of_message(subscription: Subscription, text: str) -> Trial:
    found = Message.objects.filter(
        pk=parse_public_id(text) or 0, event_type=subscription.event_type_id
    ).first()
    if found is None:
        raise invalid_field("message", f"{subscription.event_type} has no message of this id.")
    return Trial(content_type=found.content_type, body=bytes(found.body), headers=found.headers)


def _body(given: Any, content_type: str) -> bytes:
    if is_json(content_type):
        return _json(given)
    if not isinstance(given, str):
        raise invalid_field("body", f"Messages of this event type are {content_type}; give a text.")
    return given.encode(errors="replace")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")


def _shown(tried: TriedScript) -> dict[str, Any]:
    fault = tried.fault
    return {
        "error": None if fault is None else str(fault),
        "line": None if fault is None else fault.line,
        "column": None if fault is None else fault.column,
        "body": None if fault is not None or tried.is_unchanged else tried.body.decode(),
        "content_type": tried.content_type or None,
        "headers": dict(tried.headers),
        "path": tried.path,
        "status_code": tried.status_code,
        "warnings": list(tried.unkept),
    }


def _busy() -> Problem:
    return Problem(
        503,
        "too-many-trials",
        "Other scripts are being tried, and nothing was executed; repeat it in a few seconds.",
        headers={"Retry-After": str(BUSY_SECONDS)},
    )
