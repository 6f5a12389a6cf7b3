"""Common parts of all OpenAPI operations: key, query parameters and problem documents."""

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from rest_framework import serializers

from delivery.api.base.strict import Strict
from delivery.incoming.problems import CONTENT_TYPE

Direction: TypeAlias = Literal["request", "response"]


class FieldErrorSerializer(serializers.Serializer[Any]):
    """One error in the input."""

    object = serializers.CharField(
        required=False, help_text="Of a document of configuration: which object it is about."
    )
    field = serializers.CharField(
        help_text="The path of the field, with dots; empty for the whole document."
    )
    detail = serializers.CharField()
    line = serializers.IntegerField(required=False, help_text="Where in a filter, from 1.")
    column = serializers.IntegerField(required=False)


class ProblemSerializer(serializers.Serializer[Any]):
    """A problem document, RFC 9457."""

    type = serializers.CharField(
        help_text="urn:inturn:problem:… identifies the problem; programs may rely on it."
    )
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField(help_text="The fault, and how to correct it.")
    errors = FieldErrorSerializer(many=True, required=False)  # type: ignore[assignment]


class ApiSchema(AutoSchema):
    """Adds the view's query serializer, and a problem document as the answer to every failure."""

    def get_override_parameters(self) -> list[Any]:
        action = getattr(self.view, "action", None) or self.method.lower()
        query_classes: Mapping[str, Any] = self.view.query_classes  # type: ignore[attr-defined]
        return [query_classes[action]] if action in query_classes else []

    def get_summary(self) -> str:
        """Return the first words of the description; the page shows them next to the address."""
        described = str(self.get_description())
        return re.split(r"[;.:]", described, maxsplit=1)[0]

    def _map_basic_serializer(self, serializer: Any, direction: Direction) -> dict[str, Any]:
        mapped: dict[str, Any] = super()._map_basic_serializer(  # type: ignore[no-untyped-call]
            serializer, direction
        )
        if direction == "request" and isinstance(serializer, Strict):
            return mapped | {"additionalProperties": False} | dict(serializer.rules)
        return mapped

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        problem = self._get_response_for_code(
            ProblemSerializer, "default", [CONTENT_TYPE], direction
        )  # type: ignore[no-untyped-call]
        return bodies | {"default": problem | {"description": "The error as a problem document."}}


class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The entry of `KeyAuthentication` in the document."""

    target_class = "delivery.api.base.authentication.KeyAuthentication"
    name = "key"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A key, created in the console or by this API.",
        }
