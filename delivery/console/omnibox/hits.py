"""The results of the search field: each leads to a page, and tells what is there."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model, QuerySet
from django.urls import reverse


@dataclass(frozen=True, slots=True)
class OmniboxHit:
    """A line of the results; `detail` is the smaller text beside its title."""

    title: str
    detail: str
    address: str


@dataclass(frozen=True, slots=True)
class HitGroup:
    """Results of one kind under a heading."""

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


def is_registered(model: type[Model]) -> bool:
    return admin.site.is_registered(model)


def first_by_likeness(rows: QuerySet[Any], column: str, text: str, *, count: int) -> list[Any]:
    """Return rows whose column contains the text in any case: equal ones first, then beginnings."""
    folded = text.casefold()

    def rank(row: Any) -> tuple[bool, bool, str]:
        name = str(getattr(row, column)).casefold()
        return name != folded, not name.startswith(folded), name

    found = rows.filter(**{f"{column}__icontains": text}).order_by(column)
    exact = rows.filter(**{f"{column}__iexact": text})[:1]
    beginning = rows.filter(**{f"{column}__istartswith": text}).order_by(column)
    ranked = {row.pk: row for part in (exact, beginning, found) for row in part[:count]}
    return sorted(ranked.values(), key=rank)[:count]
