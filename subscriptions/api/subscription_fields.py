"""The fields of a subscription that are more than a value: checked on the way in, masked on the way out."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from subscriptions.addresses import AddressRefusedError
from subscriptions.api.problems import Place, invalid_field
from subscriptions.api.strict import Text
from subscriptions.changes import MASKED
from subscriptions.endpoints import MAX_ENDPOINT_LENGTH, EndpointError, check_endpoint, parse_endpoint
from subscriptions.filters import FilterError, parse
from subscriptions.header_values import HeaderError, check_auth, check_headers

NO_AUTH = {"type": "none"}
_SECRET_PARTS = frozenset({"password", "token"})


class EndpointField(Text):
    """A URL, perhaps with a method in front; see `check_addresses` for where it leads."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_ENDPOINT_LENGTH, allow_blank=True, **options)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if text:
            try:
                parse_endpoint(text)
            except EndpointError as error:
                raise ValidationError(str(error)) from None
        return text


def check_addresses(given: Any) -> None:
    """Refuse a body whose `endpoint` has a host with an address that is not allowed.

    Apart from the field, because resolving may take seconds, in which nothing should be locked.
    """
    endpoint = given.get("endpoint") if isinstance(given, Mapping) else None
    if not isinstance(endpoint, str) or not endpoint:
        return
    try:
        check_endpoint(endpoint, allowed_networks=settings.ENVIRONMENT.allowed_networks)
    except EndpointError:
        # The field says it, together with whatever else is wrong.
        return
    except AddressRefusedError as error:
        raise invalid_field("endpoint", str(error)) from None


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
