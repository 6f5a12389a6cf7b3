"""Normal form of a filter: the tree written as text, the same for all spellings."""

from datetime import datetime

from subscriptions.filters.errors import FilterError
from subscriptions.filters.moments import moment_text
from subscriptions.filters.parse import parse_filter
from subscriptions.filters.tree import (
    And,
    Comparison,
    Condition,
    Contains,
    Exists,
    IsNull,
    Like,
    Literal,
    Membership,
    Not,
    Or,
    Path,
)


def filter_identity(text: str) -> str:
    """Return the normal form of a filter; if it cannot be parsed, the text itself.

    It is stored with each filter. A change of the format needs a migration of the stored values;
    otherwise the groups of QUEUE event types fall apart.
    """
    try:
        return normal_form(parse_filter(text)) if text else ""
    except FilterError:
        return text


def normal_form(tree: Condition) -> str:
    """Return the filter's normal form, which parses to the same tree."""
    match tree:
        case Comparison(path, operator, operand):
            right = _path(operand) if isinstance(operand, Path) else _literal(operand)
            return f"{_path(path)} {operator.value} {right}"
        case Membership(path, literals):
            return f"{_path(path)} in ({', '.join(map(_literal, literals))})"
        case Like(path, pattern):
            return f"{_path(path)} like {_literal(pattern)}"
        case Exists(path, key):
            return f"{_path(path)} ? {_literal(key)}"
        case Contains(path, json):
            return f"{_path(path)} @> {_literal(json)}"
        case IsNull(path):
            return f"{_path(path)} is null"
        case Not(condition):
            return f"NOT {_grouped(condition, (And, Or))}"
        case And(conditions):
            return " AND ".join(_grouped(part, Or) for part in conditions)
        case Or(conditions):
            return " OR ".join(map(normal_form, conditions))


def _grouped(tree: Condition, weaker: type | tuple[type, ...]) -> str:
    return f"({normal_form(tree)})" if isinstance(tree, weaker) else normal_form(tree)


def _path(path: Path) -> str:
    *arrows, last = ["->"] * len(path.steps) + ["->>" if path.is_text else "->"]
    steps = [path.root.value, *path.steps]
    return "$$" + "".join(
        arrow + _literal(step) for arrow, step in zip([*arrows, last], steps, strict=True)
    )


def _literal(literal: Literal) -> str:
    match literal:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[literal]
        case str():
            return "'" + literal.replace("'", "''") + "'"
        case int():
            return str(literal)
        case datetime():
            return f"timestamptz '{moment_text(literal)}'"
        case number:
            return format(number, "f")
