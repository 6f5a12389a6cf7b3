"""The structured fields of a subscription: validated as input, masked in answers."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.fields import empty

from delivery.api.base.strict import Text
from subscriptions.changes import MASKED
from subscriptions.checks.moved_endpoint import SECRET_PARTS
from subscriptions.values.endpoints import parse_url
from subscriptions.values.forwarding import MAX_PATTERNS, checked_patterns
from subscriptions.values.header_values import MAX_NAME_LENGTH, HeaderError

NO_AUTH = {"type": "none"}


class ProbeField(Text):
    """A URL to call by GET, stored in encoded form."""

    def run_validation(self, data: Any = empty) -> Any:
        text = super().run_validation(data)
        return parse_url(text).url if text else text


class PatternsField(serializers.ListField):
    """Header names, or their beginnings followed by `*`.

    Stored in lower case without duplicates.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            child=Text(max_length=MAX_NAME_LENGTH + 1), max_length=MAX_PATTERNS, **options
        )

    def to_internal_value(self, data: Any) -> list[str]:
        try:
            return checked_patterns(super().to_internal_value(data))
        except HeaderError as error:
            raise ValidationError(str(error)) from None


@extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
class HeadersField(serializers.Field):  # type: ignore[type-arg]
    """Header names and values.

    Values are masked in answers, and a masked value keeps the stored value.
    """

    def to_internal_value(self, data: Any) -> dict[str, str]:
        if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
            raise ValidationError("Give an object of header names and values, both text.")
        return _unmasked(data, _stored(self))

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
    """The credentials for the endpoint.

    Password and token are masked, and a masked secret keeps the stored value.
    """

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict) or not isinstance(data.get("type"), str):
            raise ValidationError("Give an object with type none, basic or bearer.")
        return _unmasked(data, _stored(self))

    def to_representation(self, value: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: MASKED if name in SECRET_PARTS else part
            for name, part in (value or NO_AUTH).items()
        }


def _stored(field: serializers.Field[Any, Any, Any, Any]) -> Mapping[str, Any]:
    instance = getattr(field.parent, "instance", None)
    return getattr(instance, str(field.source), None) or {}


def _unmasked(values: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    if unknown := [
        name for name, value in values.items() if value == MASKED and name not in stored
    ]:
        raise ValidationError(
            f"{unknown[0]} is masked (•••), but no value is stored; give the real value."
        )
    return {name: stored[name] if value == MASKED else value for name, value in values.items()}
