"""Strict serializers: unknown fields and values of another type are refused."""

from collections.abc import Mapping
from math import isfinite
from typing import Any, ClassVar

from django.db import models
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail
from rest_framework.fields import empty
from rest_framework.validators import UniqueValidator

from subscriptions.values.json_values import validate_storable
from subscriptions.values.names import MAX_NAME_LENGTH, is_name
from subscriptions.values.times import with_plus

MAX_TEXT_LENGTH = 10_000
_OF_ANY_FIELD = frozenset(
    {"read_only", "required", "allow_null", "label", "help_text", "validators"}
)

NAME = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$", "maxLength": MAX_NAME_LENGTH}


class Text(serializers.CharField):
    """A JSON string and no other type, stored unchanged."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, "max_length": MAX_TEXT_LENGTH} | options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class WholeNumber(serializers.IntegerField):
    """A JSON number without a fraction: no "5", no 5.0, no true."""

    def to_internal_value(self, data: Any) -> int:
        if type(data) is not int:
            self.fail("invalid")
        return data


class Number(serializers.FloatField):
    """A finite JSON number: no "5", no true."""

    def to_internal_value(self, data: Any) -> float:
        if type(data) not in (int, float) or not isfinite(data):
            self.fail("invalid")
        return super().to_internal_value(data)


class Switch(serializers.BooleanField):
    """true or false: no "yes", no 1."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Moment(serializers.DateTimeField):
    """A time in ISO 8601; in a query the plus of the offset need not be encoded."""

    def to_internal_value(self, data: Any) -> Any:
        return super().to_internal_value(with_plus(data) if isinstance(data, str) else data)


class JSONValue(serializers.JSONField):
    """Any JSON that the database can store."""

    def to_internal_value(self, data: Any) -> Any:
        validate_storable(data)
        return data


@extend_schema_field(NAME)
class NameOf(serializers.SlugRelatedField[Any]):
    """Another object, given by its name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(slug_field="name", **options)
        kind = options["queryset"].model._meta.verbose_name
        self.error_messages["does_not_exist"] = f"There is no {kind} {{value}}; create it first."
        self.error_messages["blank"] = (
            "Give a name, or null for none." if self.allow_null else "Give a name."
        )

    def run_validation(self, data: Any = empty) -> Any:
        # Django REST framework would take it for null, and an empty variable of a client's script
        # would lift the limit of a key.
        if data == "":
            self.fail("blank")
        return super().run_validation(data)

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid")
        if not is_name(data):
            self.fail("does_not_exist", slug_name="name", value=data[:MAX_NAME_LENGTH])
        return super().to_internal_value(data)


class Strict(serializers.Serializer[Any]):
    """A serializer that refuses unknown fields, and fields that only Inturn sets.

    `is_remembered` caches a query that callers repeat and whose result does not depend on the
    database. `rules` are OpenAPI keywords for the requirements that `validate` has of several
    fields together.
    """

    rules: ClassVar[Mapping[str, Any]] = {}
    is_remembered: ClassVar[bool] = False

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields = super().get_fields()
        for field in fields.values():
            if isinstance(field, serializers.ChoiceField):
                choices = ", ".join(map(str, field.choices))
                field.error_messages["invalid_choice"] = f'"{{input}}" is not one of {choices}.'
        return fields

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            known = self._writable_names
            wrong = {name: self._refusal(name) for name in data if name not in known}
            if wrong:
                raise serializers.ValidationError(wrong)
        return super().to_internal_value(data)

    @property
    def _writable_names(self) -> frozenset[str]:
        return frozenset(name for name, field in self.fields.items() if not field.read_only)

    def _refusal(self, name: str) -> list[str]:
        if name in self.fields:
            return ["This is set by Inturn; leave it out."]
        return [
            (
                "There is no such field; known are "
                f"{', '.join(sorted(self._writable_names)) or 'none'}."
            )
        ]


class StrictModel(Strict, serializers.ModelSerializer[Any]):
    """A strict serializer for the rows of a model.

    Labels, descriptions, limits and validators of fields are those of the model. `field_classes`
    has the classes of fields that are read in another way than their column's type.
    """

    field_classes: ClassVar[Mapping[str, type[serializers.Field[Any, Any, Any, Any]]]] = {}

    serializer_field_mapping = serializers.ModelSerializer.serializer_field_mapping | {
        models.CharField: Text,
        models.TextField: Text,
        models.BooleanField: Switch,
        models.PositiveIntegerField: WholeNumber,
        models.PositiveSmallIntegerField: WholeNumber,
        models.FloatField: Number,
        models.JSONField: JSONValue,
    }

    def build_standard_field(
        self, field_name: str, model_field: models.Field[Any, Any]
    ) -> tuple[type[serializers.Field[Any, Any, Any, Any]], dict[str, Any]]:
        field_class, options = super().build_standard_field(field_name, model_field)
        if "validators" in options:
            # The database decides whether a name or an id is in use, because any answer here may
            # be outdated at once.
            options["validators"] = [
                each for each in options["validators"] if not isinstance(each, UniqueValidator)
            ]
        own = self.field_classes.get(field_name, field_class)
        if not issubclass(own, field_class):
            options = {name: options[name] for name in _OF_ANY_FIELD & set(options)}
        return own, options

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse values that contradict each other, or the stored row's values."""
        if refused := self.refusals(attrs):
            raise refused_fields(refused)
        return attrs

    def refusals(self, attrs: Mapping[str, Any]) -> Mapping[str, str]:
        """Return field → reason for given values that are refused together."""
        return {}

    def update(self, instance: Any, validated_data: dict[str, Any]) -> Any:
        """Write the changed columns and no others.

        If an UPDATE names a column of a unique constraint, changed or not, and a trigger fires for
        it (`note_change`), it locks out everybody who refers to the row: nobody could publish
        meanwhile.
        """
        columns = {field.name: field for field in instance._meta.concrete_fields}
        values = {name: value for name, value in validated_data.items() if name in columns}
        changed = {name for name, value in values.items() if getattr(instance, name) != value}
        for name in changed:
            setattr(instance, name, values[name])
        stamps = {name for name, field in columns.items() if getattr(field, "auto_now", False)}
        instance.save(update_fields=changed | stamps)
        for name in validated_data.keys() - columns.keys():
            getattr(instance, name).set(validated_data[name])
        return instance


def refused_fields(refused: Mapping[str, str]) -> serializers.ValidationError:
    """Return the error for field → reason, with the place in a text if a Refusal has one."""
    return serializers.ValidationError(
        {
            field: ErrorDetail(reason, code=getattr(reason, "place", None))
            for field, reason in refused.items()
        }
    )


def configured_fields(model: type[models.Model]) -> list[str]:
    """Return the names of the columns that people set, in the order of the model."""
    columns = model._meta.concrete_fields
    return [field.name for field in columns if field.editable and not field.primary_key]
