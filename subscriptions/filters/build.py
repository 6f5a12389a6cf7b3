"""Construction of the syntax tree: a method for each grammar rule, which refuses invalid input."""

from datetime import datetime
from typing import NoReturn

from lark import Token, Transformer, v_args

from subscriptions.filters.errors import error_at, excerpt
from subscriptions.filters.parts import (
    ExpressionPart,
    WholeDocument,
    WrittenLiteral,
    condition_of,
    contained_json,
    literal_of,
    moment_literal,
    next_path,
    path_of,
    step_behind,
    value_of,
)
from subscriptions.filters.patterns import MAX_PART, is_costly
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
    Operator,
    Or,
    Path,
)

_MIRRORED = {
    Operator.LESS: Operator.GREATER,
    Operator.AT_MOST: Operator.AT_LEAST,
    Operator.GREATER: Operator.LESS,
    Operator.AT_LEAST: Operator.AT_MOST,
}


@v_args(inline=True)
class Builder(Transformer[Token, ExpressionPart]):
    """A method for each rule of grammar.lark; keywords are passed as tokens between the parts."""

    def root(self, token: Token) -> ExpressionPart:
        return ExpressionPart(WholeDocument(), token)

    def literal(self, token: Token) -> ExpressionPart:
        return ExpressionPart(WrittenLiteral(literal_of(token)), token)

    def bare_word(self, token: Token) -> NoReturn:
        raise error_at(
            token, f"{excerpt(token)} is unknown; put strings and names in single quotes"
        )

    def as_json(self, left: ExpressionPart, arrow: Token, step: ExpressionPart) -> ExpressionPart:
        return ExpressionPart(next_path(left, arrow, step), left.token)

    as_text = as_json

    def exists(self, left: ExpressionPart, mark: Token, key: ExpressionPart) -> ExpressionPart:
        path = path_of(left, mark)
        if path.is_text:
            raise error_at(mark, "? tests JSON; end the path on its left with -> instead of ->>")
        name = step_behind(path, key)
        if not isinstance(name, str):
            raise key.refusal("? takes a name in single quotes; for an index write ->… is not null")
        return ExpressionPart(Exists(path, name), left.token)

    def contains(self, left: ExpressionPart, mark: Token, json: ExpressionPart) -> ExpressionPart:
        path = path_of(left, mark)
        if path.is_text:
            raise error_at(mark, "@> tests JSON; end the path on its left with -> instead of ->>")
        return ExpressionPart(Contains(path, contained_json(json)), left.token)

    def moment(self, keyword: Token, text: Token) -> ExpressionPart:
        return ExpressionPart(WrittenLiteral(moment_literal(text)), keyword)

    def compared(
        self, left: ExpressionPart, operator: Token, right: ExpressionPart
    ) -> ExpressionPart:
        meaning = Operator("!=" if operator == "<>" else operator)
        if isinstance(value_of(left), WrittenLiteral):
            return ExpressionPart(
                _comparison(right, _MIRRORED.get(meaning, meaning), left), left.token
            )
        return ExpressionPart(_comparison(left, meaning, right), left.token)

    def items(self, first: ExpressionPart, *rest: ExpressionPart) -> tuple[Literal, ...]:
        return tuple(_listed(part) for part in (first, *rest))

    def member(
        self, left: ExpressionPart, keyword: Token, literals: tuple[Literal, ...]
    ) -> ExpressionPart:
        return ExpressionPart(_membership(left, keyword, literals), left.token)

    def not_member(
        self, left: ExpressionPart, _not: Token, keyword: Token, literals: tuple[Literal, ...]
    ) -> ExpressionPart:
        return ExpressionPart(Not(_membership(left, keyword, literals)), left.token)

    def like(self, left: ExpressionPart, keyword: Token, pattern: ExpressionPart) -> ExpressionPart:
        return ExpressionPart(_like(path_of(left, keyword), keyword, pattern), left.token)

    def not_like(
        self, left: ExpressionPart, _not: Token, keyword: Token, pattern: ExpressionPart
    ) -> ExpressionPart:
        return ExpressionPart(Not(_like(path_of(left, keyword), keyword, pattern)), left.token)

    def is_null(self, left: ExpressionPart, *_keywords: Token) -> ExpressionPart:
        return ExpressionPart(IsNull(path_of(left, "is null")), left.token)

    def is_not_null(self, left: ExpressionPart, *_keywords: Token) -> ExpressionPart:
        return ExpressionPart(Not(IsNull(path_of(left, "is not null"))), left.token)

    def negated(self, keyword: Token, part: ExpressionPart) -> ExpressionPart:
        condition = condition_of(part)
        # Collapsed, because a run of NOTs must not make a tree too deep for the compilers.
        return ExpressionPart(
            condition.condition if isinstance(condition, Not) else Not(condition), keyword
        )

    def all_of(self, first: ExpressionPart, *rest: ExpressionPart | Token) -> ExpressionPart:
        return ExpressionPart(And(_operands(first, *rest, inside=And)), first.token)

    def any_of(self, first: ExpressionPart, *rest: ExpressionPart | Token) -> ExpressionPart:
        return ExpressionPart(Or(_operands(first, *rest, inside=Or)), first.token)


def _operands(
    *parts: ExpressionPart | Token, inside: type[And] | type[Or]
) -> tuple[Condition, ...]:
    """Return the operands of AND or OR, with (a AND b) AND c flattened."""
    operands: list[Condition] = []
    for part in parts:
        if isinstance(part, ExpressionPart):
            condition = condition_of(part)
            if isinstance(condition, And | Or) and isinstance(condition, inside):
                operands += condition.conditions
            else:
                operands.append(condition)
    return tuple(operands)


def _comparison(left: ExpressionPart, operator: Operator, right: ExpressionPart) -> Comparison:
    path = path_of(left, "a comparison")
    match value_of(right):
        case Path() as other:
            if path.is_text is not other.is_text:
                raise right.refusal(
                    "JSON and text never compare: end both paths with ->, or both with ->>"
                )
            return Comparison(path, operator, other)
        case WrittenLiteral(value):
            if isinstance(value, bool) and operator.is_order:
                raise right.refusal("true and false have no order; compare them with = or !=")
            _refuse_moment(path, value, right.token)
            return Comparison(path, operator, value)


def _membership(left: ExpressionPart, keyword: Token, literals: tuple[Literal, ...]) -> Membership:
    path = path_of(left, keyword)
    for literal in literals:
        _refuse_moment(path, literal, keyword)
    return Membership(path, literals)


def _refuse_moment(path: Path, literal: Literal, token: Token) -> None:
    if isinstance(literal, datetime) and not path.is_text:
        raise error_at(token, "a time compares with text; end the path with ->> instead of ->")


def _listed(part: ExpressionPart) -> Literal:
    match value_of(part):
        case WrittenLiteral(value):
            return value
        case Path():
            raise part.refusal("a list holds strings and numbers; compare two paths with =")


def _like(path: Path, keyword: Token, pattern: ExpressionPart) -> Like:
    if not path.is_text:
        raise error_at(
            keyword, f"{keyword} compares text; end the path on its left with ->> instead of ->"
        )
    match value_of(pattern):
        case WrittenLiteral(str() as text):
            if (len(text) - len(text.rstrip("\\"))) % 2:
                raise pattern.refusal(
                    "a pattern must not end in a single \\; write \\\\ for the character itself"
                )
            if is_costly(text):
                raise pattern.refusal(
                    f"a part between two % that holds _ has at most {MAX_PART} characters; "
                    "split it with a %"
                )
            return Like(path, text)
    raise pattern.refusal(f"{keyword} takes a pattern in single quotes, such as 'proj%'")
