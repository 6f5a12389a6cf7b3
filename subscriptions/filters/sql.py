"""SQL fragments with their parameters, so that text and parameters stay in the same order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Parameter: TypeAlias = str | int | list[str]


@dataclass(frozen=True, slots=True)
class Sql:
    text: str
    parameters: tuple[Parameter, ...] = ()


def typed_parameter(parameter: Parameter, sql_type: str) -> Sql:
    return Sql(f"%s::{sql_type}", (parameter,))


def compose_sql(template: str, *parts: Sql) -> Sql:
    text = template.format(*[part.text for part in parts])
    return Sql(text, tuple(parameter for part in parts for parameter in part.parameters))


def joined_sql(separator: str, parts: Sequence[Sql]) -> Sql:
    return compose_sql("(" + separator.join(["{}"] * len(parts)) + ")", *parts)
