"""The fields of a subscription that are more than a value: checked on the way in, masked on the way out."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from subscriptions.addresses import AddressRefusedError
from subscriptions.api.problems import Place
from subscriptions.api.strict import Text
from subscriptions.changes import MASKED
from subscriptions.endpoints import MAX_ENDPOINT_LENGTH, EndpointError, check_endpoint
from subscriptions.filters import FilterError, parse
from subscriptions.header_values import HeaderError, check_auth, check_headers

NO_AUTH = {"type": "none"}
_SECRET_PARTS = frozenset({"password", "token"})


class EndpointField(Text):
    """A URL, perhaps with a method in front, whose host has none but allowed addresses."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_ENDPOINT_LENGTH, allow_blank=True, **options)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not text:
            return text
        try:
            check_endpoint(text, allowed_networks=settings.ENVIRONMENT.allowed_networks)
        except (EndpointError, AddressRefusedError) as error:
            raise ValidationError(str(error)) from None
        return text


class FilterField(Text):
    """A filter, or nothing; a wrong one is refused with line and column."""

    def __init__(self, **options: Any) -> None:
        # The parser knows its own limit, and says it better.
        super().__init__(max_length=None, allow_blank=True, **options)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if text:
            check_filter(text)
        return text


def check_filter(text: str) -> None:
    try:
        parse(text)
    except FilterError as error:
        place = Place(error.line, error.column)
        raise ValidationError(str(error), code=place) from None  # type: ignore[arg-type]


@extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
class HeadersField(serializers.Field):  # type: ignore[type-arg]
    """Header names and values; the values are masked in answers, and a masked one means: as it is."""

    def to_internal_value(self, data: Any) -> dict[str, str]:
        if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
            raise ValidationError("Give an object of header names and values, both text.")
        headers = _unmasked(data, _stored(self))
        try:
            check_headers(headers)
        except HeaderError as error:
            raise ValidationError(str(error)) from None
        return headers

    def to_representation(self, value: Mapping[str, str]) -> dict[str, str]:
        return dict.fromkeys(value, MASKED)


@extend_schema_field(
    {
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {"type": "string", "enum": ["none", "basic", "bearer"]},
            "username": {"type": "string"},
            "password": {"type": "string"},
            "token": {"type": "string"},
        },
    }
)
class AuthField(serializers.Field):  # type: ignore[type-arg]
    """How the endpoint knows Inturn; password and token are masked, and a masked one means: as it is."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict) or not isinstance(data.get("type"), str):
            raise ValidationError("Give an object with type none, basic or bearer.")
        auth = _unmasked(data, _stored(self))
        try:
            check_auth(auth, header_names=())
        except HeaderError as error:
            raise ValidationError(str(error)) from None
        return auth

    def to_representation(self, value: Mapping[str, Any]) -> dict[str, Any]:
        return {name: MASKED if name in _SECRET_PARTS else part for name, part in (value or NO_AUTH).items()}


def _stored(field: serializers.Field[Any, Any, Any, Any]) -> Mapping[str, Any]:
    instance = getattr(field.parent, "instance", None)
    return getattr(instance, str(field.source), None) or {}


def _unmasked(given: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    if unknown := [name for name, value in given.items() if value == MASKED and name not in stored]:
        raise ValidationError(f"{unknown[0]} is masked, and there is none yet that it could stand for.")
    return {name: stored[name] if value == MASKED else value for name, value in given.items()}
