"""A resource: rows that administrators list, create, read, change and delete."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.db import IntegrityError, models, transaction
from django.shortcuts import get_object_or_404
from psycopg.errors import CheckViolation, UniqueViolation
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from delivery.api.base.authentication import actor_of
from delivery.api.base.pages import ByName, KeysetPages, PageOrder
from delivery.api.base.strict import Strict
from delivery.api.base.views import ApiView
from delivery.incoming.problems import Problem
from subscriptions import changes
from subscriptions.dependents import first_dependents


class Resource(ApiView, GenericViewSet[Any]):
    """Each change is one transaction with an entry in the configuration log.

    `related` are the foreign keys that answers show.
    """

    lookup_field = "name"
    order: ClassVar[PageOrder] = PageOrder(column="name")
    query_classes: ClassVar[Mapping[str, type[Strict]]] = {"list": ByName}
    related: ClassVar[tuple[str, ...]] = ()
    instead_of_deleting: ClassVar[str] = "it stays as long as they do"
    pagination_class = KeysetPages

    def get_queryset(self) -> models.QuerySet[Any]:
        rows = super().get_queryset()
        return rows.select_related(*self.related) if self.related else rows

    def list(self, request: Request, **place: str) -> Response:
        """List them, a page at a time."""
        page = self.paginate_queryset(self.selected(self.get_queryset()))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def retrieve(self, request: Request, **place: str) -> Response:
        """Read one."""
        return Response(self.get_serializer(self.get_object()).data)

    def create(self, request: Request, **place: str) -> Response:
        """Create one; 409 when the name is in use."""
        self.check_elsewhere(request.data)
        with transaction.atomic():
            instance = self.save(request)
            self.record("created", instance, after=self.snapshot(instance))
            answer = self.created(instance)
        return Response(answer, status=201)

    def partial_update(self, request: Request, **place: str) -> Response:
        """Change the given fields."""
        self.check_elsewhere(request.data)
        with transaction.atomic():
            instance = self.locked()
            before = self.snapshot(instance)
            self.save(request, instance=instance)
            after = self.snapshot(instance) | _renewed(request.data)
            self.record("changed", instance, before=before, after=after)
        return Response(self.get_serializer(instance).data)

    def destroy(self, request: Request, **place: str) -> Response:
        """Delete it; 409 while something depends on it."""
        with transaction.atomic():
            instance = self.locked(to_delete=True)
            if dependents := first_dependents(instance):
                raise Problem(
                    409, "in-use", f"{instance} has {dependents}; {self.instead_of_deleting}."
                )
            self.record("deleted", instance, before=self.snapshot(instance))
            instance.delete()
        return Response(status=204)

    def selected(self, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Return the rows that the query selects."""
        return rows

    def created(self, instance: Any) -> Mapping[str, Any]:
        """Return the answer to a POST."""
        return dict(self.get_serializer(instance).data)

    def check_elsewhere(self, data: Any) -> None:
        """Check parts of a body by calls to other systems, which are too slow for a lock."""

    def locked(self, *, to_delete: bool = False) -> Any:
        """Return the row, locked against changes until the transaction ends.

        Publishing refers to the row and goes on meanwhile, unless it is about to be deleted.
        """
        rows = self.get_queryset().select_for_update(of=("self",), no_key=not to_delete)
        return get_object_or_404(rows, **{self.lookup_field: self.kwargs[self.lookup_field]})

    def save(self, request: Request, *, instance: Any = None) -> Any:
        """Validate the body, and create or change the row."""
        serializer = self.get_serializer(instance, data=request.data, partial=instance is not None)
        serializer.is_valid(raise_exception=True)
        try:
            with transaction.atomic():
                return serializer.save(**self.fixed_values())
        except IntegrityError as error:
            raise _conflict(error, serializer) from None

    def fixed_values(self) -> dict[str, Any]:
        """Return the values that the address determines rather than the body."""
        return {}

    def snapshot(self, instance: Any) -> dict[str, Any]:
        """Return a row's state for the configuration log."""
        return changes.snapshot(instance)

    def record(
        self,
        action: str,
        instance: models.Model,
        *,
        before: dict[str, Any] | None = None,
        after: dict[str, Any] | None = None,
    ) -> None:
        changes.record_change(
            actor=actor_of(self.request),
            action=action,
            instance=instance,
            before=before,
            after=after,
        )


def _renewed(values: Mapping[str, Any]) -> dict[str, str]:
    """Return log values for secrets that were set: masked, old and new would look the same."""
    return dict.fromkeys(changes.SECRET_FIELDS & set(values), f"{changes.MASKED}, new value")


def _constraint_message(
    serializer: serializers.BaseSerializer[Any], violation: UniqueViolation
) -> str:
    """Return the model's message for a violated constraint, or an empty string."""
    model: type[models.Model] = serializer.Meta.model  # type: ignore[attr-defined]
    own = models.UniqueConstraint.default_violation_error_message
    messages = {
        constraint.name: str(constraint.violation_error_message)
        for constraint in model._meta.constraints
    }
    detail = messages.get(violation.diag.constraint_name or "", "")
    return "" if detail == str(own) else detail


def _conflict(error: IntegrityError, serializer: serializers.BaseSerializer[Any]) -> Problem:
    match error.__cause__:
        case UniqueViolation() as violation if detail := _constraint_message(serializer, violation):
            return Problem(409, "in-use-elsewhere", detail)
        case UniqueViolation():
            name = serializer.validated_data.get("name")
            return Problem(
                409, "name-in-use", f"The name {name} is in use; choose another or change that one."
            )
        case CheckViolation() as violation:
            return Problem(
                400,
                "invalid",
                f"These values contradict each other: {violation.diag.constraint_name}.",
            )
    return Problem(
        409,
        "changed-meanwhile",
        "An object that it refers to has just been deleted; check it and repeat.",
    )
