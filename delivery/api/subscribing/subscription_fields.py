"""The structured fields of a subscription: validated as input, masked in answers."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from delivery.api.base.strict import Text
from delivery.incoming.problems import Place, invalid_field
from subscriptions.changes import MASKED
from subscriptions.checks import script
from subscriptions.checks.dedup import check_path
from subscriptions.checks.moved_endpoint import SECRET_PARTS
from subscriptions.filters import Condition, FilterError, parse_filter
from subscriptions.values.addresses import AddressRefusedError
from subscriptions.values.built_in_receivers import built_in_receivers
from subscriptions.values.endpoints import (
    INTERNAL,
    MAX_ENDPOINT_LENGTH,
    EndpointError,
    check_endpoint,
    parse_endpoint,
    parse_url,
)
from subscriptions.values.forwarding import MAX_PATTERNS, checked_patterns
from subscriptions.values.header_values import (
    MAX_NAME_LENGTH,
    HeaderError,
    check_auth,
    check_headers,
)

NO_AUTH = {"type": "none"}
MAX_PATH_LENGTH = 1000


class EndpointField(Text):
    """A URL, optionally with a method in front; see `check_addresses` for the host."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_ENDPOINT_LENGTH, allow_blank=True, **options)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if text and text != INTERNAL:
            try:
                parse_endpoint(text)
            except EndpointError as error:
                raise ValidationError(str(error)) from None
        return text


class ProbeField(Text):
    """A URL to call by GET, stored in encoded form; see `check_addresses` for the host."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_ENDPOINT_LENGTH, allow_blank=True, **options)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        try:
            return parse_url(text).url if text else ""
        except EndpointError as error:
            raise ValidationError(str(error)) from None


def check_addresses(data: Any) -> None:
    """Refuse a body whose `endpoint` or `probe_url` has a host with a forbidden address.

    Separate from the fields, because resolving may take seconds, and no lock should be held then.
    """
    for field in ("endpoint", "probe_url"):
        url = data.get(field) if isinstance(data, Mapping) else None
        if isinstance(url, str) and url:
            _check_address(field, url)


def _check_address(field: str, url: str) -> None:
    try:
        check_endpoint(
            url,
            allowed_networks=settings.ENVIRONMENT.allowed_networks,
            built_in_receivers=built_in_receivers(settings.ENVIRONMENT.base_url),
        )
    except EndpointError:
        # The field reports it, together with all other errors.
        return
    except AddressRefusedError as error:
        raise invalid_field(field, str(error)) from None


class FilterField(Text):
    """A filter, or an empty string; an invalid filter is refused with line and column."""

    def __init__(self, **options: Any) -> None:
        # The parser has another limit, with a better message.
        super().__init__(max_length=None, allow_blank=True, **options)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if text:
            check_filter(text)
        return text


def check_filter(text: str) -> Condition:
    """Return the tree; raises ValidationError with line and column."""
    try:
        return parse_filter(text)
    except FilterError as error:
        raise _with_place(error) from None


class ScriptField(Text):
    """A script, or an empty string; invalid ECMAScript is refused with line and column."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=None, allow_blank=True, trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if fault := script.fault(text, common=self.context.get("common")):
            place = (
                None if fault.source else Place(fault.line, fault.column)  # type: ignore[arg-type]
            )
            raise ValidationError(str(fault), code=place)  # type: ignore[arg-type]
        return text


class PathField(Text):
    """A path of the filter language, or an empty string.

    An invalid filter is refused with the place.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_PATH_LENGTH, allow_blank=True, **options)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        try:
            if text:
                check_path(text)
        except FilterError as error:
            raise _with_place(error) from None
        return text


def _with_place(error: FilterError) -> ValidationError:
    place = Place(error.line, error.column)
    return ValidationError(str(error), code=place)  # type: ignore[arg-type]


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

    Values are masked in answers, and a masked value keeps the stored one.
    """

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
    """The credentials for the endpoint.

    Password and token are masked, and a masked one keeps its value.
    """

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
