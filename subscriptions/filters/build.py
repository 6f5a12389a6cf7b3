"""What the parser makes of each rule of the grammar, refusing what has no meaning."""

from typing import NoReturn

from lark import Token, Transformer, v_args

from subscriptions.filters.errors import error_at, excerpt
from subscriptions.filters.parts import (
    Part,
    WholeDocument,
    Written,
    condition_of,
    literal_of,
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
class Builder(Transformer[Token, Part]):
    """A method for each rule of grammar.lark; keywords come as tokens between the parts."""

    def root(self, token: Token) -> Part:
        return Part(WholeDocument(), token)

    def literal(self, token: Token) -> Part:
        return Part(Written(literal_of(token)), token)

    def bare_word(self, token: Token) -> NoReturn:
        raise error_at(token, f"{excerpt(token)} is not known; strings and names stand in single quotes")

    def as_json(self, left: Part, arrow: Token, step: Part) -> Part:
        return Part(next_path(left, arrow, step), left.token)

    as_text = as_json

    def exists(self, left: Part, mark: Token, key: Part) -> Part:
        path = path_of(left, mark)
        if path.is_text:
            raise error_at(mark, "? asks about JSON; end the path on its left with -> instead of ->>")
        name = step_behind(path, key)
        if not isinstance(name, str):
            raise key.refusal("? takes a name in single quotes; for an index write ->… is not null")
        return Part(Exists(path, name), left.token)

    def compared(self, left: Part, operator: Token, right: Part) -> Part:
        meaning = Operator("!=" if operator == "<>" else operator)
        if isinstance(value_of(left), Written):
            return Part(_comparison(right, _MIRRORED.get(meaning, meaning), left), left.token)
        return Part(_comparison(left, meaning, right), left.token)

    def items(self, first: Part, *rest: Part) -> tuple[Literal, ...]:
        return tuple(_listed(part) for part in (first, *rest))

    def member(self, left: Part, keyword: Token, literals: tuple[Literal, ...]) -> Part:
        return Part(Membership(path_of(left, keyword), literals), left.token)

    def not_member(self, left: Part, _not: Token, keyword: Token, literals: tuple[Literal, ...]) -> Part:
        return Part(Not(Membership(path_of(left, keyword), literals)), left.token)

    def like(self, left: Part, keyword: Token, pattern: Part) -> Part:
        return Part(_like(path_of(left, keyword), keyword, pattern), left.token)

    def not_like(self, left: Part, _not: Token, keyword: Token, pattern: Part) -> Part:
        return Part(Not(_like(path_of(left, keyword), keyword, pattern)), left.token)

    def is_null(self, left: Part, *_keywords: Token) -> Part:
        return Part(IsNull(path_of(left, "is null")), left.token)

    def is_not_null(self, left: Part, *_keywords: Token) -> Part:
        return Part(Not(IsNull(path_of(left, "is not null"))), left.token)

    def negated(self, keyword: Token, part: Part) -> Part:
        condition = condition_of(part)
        # A run of NOTs must not make a tree too deep for the compilers.
        return Part(condition.condition if isinstance(condition, Not) else Not(condition), keyword)

    def all_of(self, first: Part, *rest: Part | Token) -> Part:
        return Part(And(_operands(first, *rest, inside=And)), first.token)

    def any_of(self, first: Part, *rest: Part | Token) -> Part:
        return Part(Or(_operands(first, *rest, inside=Or)), first.token)


def _operands(*parts: Part | Token, inside: type[And] | type[Or]) -> tuple[Condition, ...]:
    """What is joined, without a level for (a AND b) AND c."""
    found: list[Condition] = []
    for part in parts:
        if isinstance(part, Part):
            condition = condition_of(part)
            if isinstance(condition, And | Or) and isinstance(condition, inside):
                found += condition.conditions
            else:
                found.append(condition)
    return tuple(found)


def _comparison(left: Part, operator: Operator, right: Part) -> Comparison:
    path = path_of(left, "a comparison")
    match value_of(right):
        case Path() as other:
            if path.is_text is not other.is_text:
                raise right.refusal("JSON and text never compare: end both paths with ->, or both with ->>")
            return Comparison(path, operator, other)
        case Written(value):
            if isinstance(value, bool) and operator.is_order:
                raise right.refusal("true and false have no order; compare them with = or !=")
            return Comparison(path, operator, value)


def _listed(part: Part) -> Literal:
    match value_of(part):
        case Written(value):
            return value
        case Path():
            raise part.refusal("a list holds strings and numbers; compare two paths with =")


def _like(path: Path, keyword: Token, pattern: Part) -> Like:
    if not path.is_text:
        raise error_at(keyword, f"{keyword} asks about text; end the path on its left with ->> instead of ->")
    match value_of(pattern):
        case Written(str() as text):
            if (len(text) - len(text.rstrip("\\"))) % 2:
                raise pattern.refusal(
                    "a pattern must not end in a single \\; write \\\\ for the character itself"
                )
            if is_costly(text):
                raise pattern.refusal(
                    f"a part between two % that holds _ has at most {MAX_PART} characters; split it with a %"
                )
            return Like(path, text)
    raise pattern.refusal(f"{keyword} takes a pattern in single quotes, such as 'proj%'")
