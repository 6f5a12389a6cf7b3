"""Compilation of a syntax tree into a boolean expression of PostgreSQL, which never raises.

It needs PostgreSQL 15 or later. Each cast is inside a CASE whose condition admits only values
acceptable to the cast.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from subscriptions.filters import jsonb
from subscriptions.filters.moments import (
    FRACTION_EXPRESSION,
    FRACTION_REPLACEMENT,
    MOMENT_TEXT,
    moment_text,
)
from subscriptions.filters.tree import (
    NUMBER_LENGTH,
    NUMBER_TEXT,
    And,
    Comparison,
    Condition,
    Contains,
    Exists,
    IsNull,
    Leaf,
    Like,
    Literal,
    LiteralKind,
    Membership,
    Not,
    Operator,
    Or,
    Path,
    Root,
    json_literal,
    kind_of,
    literals_by_kind,
)

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


# Parallel unsafe, because a worker may not start the subtransaction of an exception block.
INTURN_JSON_FUNCTION = f"""
CREATE OR REPLACE FUNCTION inturn_json(body bytea) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE
AS $function$
DECLARE
    parsed jsonb;
BEGIN
    parsed := convert_from(body, 'UTF8')::jsonb;
    IF jsonb_path_exists(parsed, 'strict $.**{{{jsonb.MAX_DEPTH + 1}}}') THEN
        RETURN NULL;
    END IF;
    IF octet_length(body) + {jsonb.MAX_GROWTH} < (
        SELECT sum(length(number #>> '{{}}'))
        FROM jsonb_path_query(parsed, 'strict $.** ? (@.type() == "number")') AS number
    ) THEN
        RETURN NULL;
    END IF;
    RETURN parsed;
EXCEPTION
    WHEN data_exception OR program_limit_exceeded THEN
        RETURN NULL;
END
$function$
"""  # noqa: S608 - of numbers above

_Roots: TypeAlias = Mapping[Root, str]

_NULL = Sql("NULL::boolean")
_TYPES = {
    LiteralKind.BOOLEAN: "boolean",
    LiteralKind.NUMBER: "numeric",
    LiteralKind.STRING: "text",
    LiteralKind.MOMENT: "timestamptz",
}
_MOMENT_TEXT = Sql(f"'^({MOMENT_TEXT})$'")
_NUMBER_TEXT = Sql(f"'^({NUMBER_TEXT})$'")
_NUMBER_LENGTH = Sql(str(NUMBER_LENGTH))


def to_sql(tree: Condition, *, header: str, body: str) -> tuple[str, list[Parameter]]:
    """Return the expression and the parameters in order, for psycopg or Django.

    `header` and `body` are SQL of type jsonb, and are repeated at each use in the filter. So pass
    columns, such as those of `CROSS JOIN LATERAL (SELECT inturn_json(m.body) AS body OFFSET 0)`.
    """
    sql = _condition(tree, {Root.HEADER: header, Root.BODY: body})
    return sql.text, list(sql.parameters)


def _condition(tree: Condition, roots: _Roots) -> Sql:
    match tree:
        case Not(condition):
            return compose_sql("(NOT {})", _condition(condition, roots))
        case And(conditions):
            return joined_sql(" AND ", [_condition(part, roots) for part in conditions])
        case Or(conditions):
            return joined_sql(" OR ", [_condition(part, roots) for part in conditions])
        case leaf:
            return _leaf(leaf, roots)


def _leaf(leaf: Leaf, roots: _Roots) -> Sql:
    match leaf:
        case Comparison(path, operator, operand):
            if isinstance(operand, Path):
                return _between_paths(path, operator, operand, roots)
            return _with_literal(path, operator, operand, roots)
        case Membership(path, literals):
            return joined_sql(
                " OR ",
                [
                    _among(path, kind, members, roots)
                    for kind, members in literals_by_kind(literals)
                ],
            )
        case Like(path, pattern):
            return compose_sql(
                '({} COLLATE "C" LIKE {})', _value(path, roots), typed_parameter(pattern, "text")
            )
        case Exists(path, key):
            return compose_sql("({} ? {})", _value(path, roots), typed_parameter(key, "text"))
        case Contains(path, json):
            return compose_sql("({} @> {})", _value(path, roots), typed_parameter(json, "jsonb"))
        case IsNull(path):
            return compose_sql("({} IS NULL)", _value(path, roots))


def _value(path: Path, roots: _Roots) -> Sql:
    value = Sql(f"({roots[path.root]})")
    if path.is_text and not path.steps:
        return _bare(value)
    arrows = ["->"] * (len(path.steps) - 1) + ["->>" if path.is_text else "->"]
    for arrow, step in zip(arrows, path.steps, strict=False):
        value = compose_sql(
            f"({{}} {arrow} {{}})",
            value,
            typed_parameter(step, "int" if isinstance(step, int) else "text"),
        )
    return value


def _bare(value: Sql) -> Sql:
    """Return the text of `->>` if the last step leads to this value."""
    return compose_sql("({} #>> '{{}}')", value)


def _with_literal(path: Path, operator: Operator, literal: Literal, roots: _Roots) -> Sql:
    if literal is None:
        return _NULL
    value, kind = _value(path, roots), kind_of(literal)
    if not path.is_text and not operator.is_order:
        return compose_sql(
            f"({{}} {operator.value} {{}})",
            value,
            typed_parameter(jsonb.printed_text(json_literal(literal)), "jsonb"),
        )
    comparison = compose_sql(
        f"({{}} {operator.value} {{}})",
        _comparable(value, kind, is_text=path.is_text),
        typed_parameter(_input(literal), _TYPES[kind]),
    )
    return _guarded(value, kind, comparison, is_text=path.is_text)


def _among(path: Path, kind: LiteralKind, literals: tuple[Literal, ...], roots: _Roots) -> Sql:
    if kind is LiteralKind.NULL:
        return _NULL
    value = _value(path, roots)
    if not path.is_text:
        return compose_sql(
            "({} = ANY ({}))",
            value,
            typed_parameter(
                [jsonb.printed_text(json_literal(literal)) for literal in literals], "jsonb[]"
            ),
        )
    members = typed_parameter([_input(literal) for literal in literals], _TYPES[kind] + "[]")
    comparison = compose_sql("({} = ANY ({}))", _comparable(value, kind, is_text=True), members)
    return _guarded(value, kind, comparison, is_text=True)


def _between_paths(path: Path, operator: Operator, other: Path, roots: _Roots) -> Sql:
    left, right = _value(path, roots), _value(other, roots)
    if path.is_text:
        return compose_sql(f'({{}} COLLATE "C" {operator.value} {{}})', left, right)
    if not operator.is_order:
        return compose_sql(f"({{}} {operator.value} {{}})", left, right)
    return compose_sql(
        "(CASE WHEN {} THEN {} WHEN {} THEN {} END)",
        *[
            part
            for kind in (LiteralKind.NUMBER, LiteralKind.STRING)
            for part in (
                joined_sql(" AND ", [_guard(side, kind, is_text=False) for side in (left, right)]),
                joined_sql(
                    f" {operator.value} ",
                    [_comparable(side, kind, is_text=False) for side in (left, right)],
                ),
            )
        ],
    )


def _guard(value: Sql, kind: LiteralKind, *, is_text: bool) -> Sql:
    """Return a test of whether a value, if not null, can be read as this kind."""
    if not is_text:
        return compose_sql(f"jsonb_typeof({{}}) = '{kind.value}'", value)
    if kind is LiteralKind.NUMBER:
        return compose_sql(
            "length({}) <= {} AND {} ~ {}", value, _NUMBER_LENGTH, value, _NUMBER_TEXT
        )
    if kind is LiteralKind.MOMENT:
        return compose_sql("{} ~ {}", value, _MOMENT_TEXT)
    return compose_sql("{} IN ('true', 'false')", value)


def _comparable(value: Sql, kind: LiteralKind, *, is_text: bool) -> Sql:
    if kind is LiteralKind.STRING:
        return compose_sql('{} COLLATE "C"', value if is_text else _bare(value))
    if kind is LiteralKind.MOMENT:
        cut = Sql(f"'{FRACTION_EXPRESSION}', '{FRACTION_REPLACEMENT}'")
        return compose_sql("regexp_replace({}, {})::timestamptz", value, cut)
    return compose_sql(f"{{}}::{_TYPES[kind]}", value)


def _guarded(value: Sql, kind: LiteralKind, comparison: Sql, *, is_text: bool) -> Sql:
    if is_text and kind is LiteralKind.STRING:
        return comparison
    return compose_sql(
        "(CASE WHEN {} THEN {} END)", _guard(value, kind, is_text=is_text), comparison
    )


def _input(literal: Literal) -> str:
    if isinstance(literal, datetime):
        return moment_text(literal)
    return literal if isinstance(literal, str) else jsonb.printed_text(literal)
