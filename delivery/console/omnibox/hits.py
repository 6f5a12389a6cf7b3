"""The results of the search field: each leads to a page and describes it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Case, Model, QuerySet, Value, When
from django.urls import reverse


@dataclass(frozen=True, slots=True)
class OmniboxHit:
    """A line of the results; `detail` is the smaller text beside the title."""

    title: str
    detail: str
    address: str


@dataclass(frozen=True, slots=True)
class HitSection:
    """Results of a kind under a heading."""

    title: str
    hits: Sequence[OmniboxHit]

    def as_json(self) -> dict[str, Any]:
        return {"title": self.title, "hits": [asdict(hit) for hit in self.hits]}


def may_view(user: User, model: type[Model]) -> bool:
    return user.has_perm(f"{model._meta.app_label}.view_{model._meta.model_name}")


def may_add(user: User, model: type[Model]) -> bool:
    return user.has_perm(f"{model._meta.app_label}.add_{model._meta.model_name}")


def list_address(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def page_address(model: type[Model], pk: int, page: str = "change") -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=[pk])


def add_address(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_add")


def first_by_likeness(rows: QuerySet[Any], column: str, text: str, *, count: int) -> list[Any]:
    """Return rows whose column contains the text in any case: equal first, then beginnings."""
    likeness = Case(
        When(**{f"{column}__iexact": text}, then=Value(0)),
        When(**{f"{column}__istartswith": text}, then=Value(1)),
        default=Value(2),
    )
    found = rows.filter(**{f"{column}__icontains": text}).annotate(likeness=likeness)
    return list(found.order_by("likeness", column)[:count])
