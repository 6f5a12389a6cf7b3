"""The comparison of two OpenAPI documents, on documents with one operation."""

from typing import Any

import pytest

from tests.architecture.api_compatibility import Documents

Schema = dict[str, Any]

KEY: Schema = {"key": []}
PASSWORD: Schema = {"password": []}
TEXT, NUMBER, NULL = {"type": "string"}, {"type": "integer"}, {"enum": [None]}


def document(
    *, request: Schema = TEXT, answer: Schema = TEXT, components: Schema | None = None, **more: Any
) -> Schema:
    operation = {
        "requestBody": {"content": {"application/json": {"schema": request}}},
        "responses": {"200": {"content": {"application/json": {"schema": answer}}}},
    }
    return {"paths": {"/a": {"post": operation | more}}, "components": components or {}}


def breaks(old: Schema, new: Schema) -> list[str]:
    return list(Documents(old, new).breaks())


def of_requests(old: Schema, new: Schema) -> list[str]:
    return breaks(document(request=old), document(request=new))


def of_answers(old: Schema, new: Schema) -> list[str]:
    return breaks(document(answer=old), document(answer=new))


def text(**limits: Any) -> Schema:
    return TEXT | limits


def one_of(*schemas: Schema, **common: Any) -> Schema:
    return {"oneOf": list(schemas)} | common


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (text(), text(pattern="^a$"), "the pattern None became ^a$"),
        (text(pattern="^a*$"), text(pattern="^a$"), "the pattern ^a*$ became ^a$"),
        (text(), text(format="uri"), "the format None became uri"),
        (text(format="date"), text(format="date-time"), "the format date became date-time"),
        (text(), text(maxLength=5), "maxLength fell to 5"),
        (text(maxLength=9), text(maxLength=5), "maxLength fell to 5"),
        (one_of(TEXT, NUMBER), one_of(TEXT), "alternative 2 of 2 is refused now"),
        (
            one_of(TEXT, NUMBER),
            one_of(text(maxLength=5), NUMBER),
            "alternative 1 of 2 is refused now",
        ),
        (text(), one_of(text(maxLength=5), NUMBER), "alternative 1 of 1 is refused now"),
        ({"anyOf": [TEXT, NUMBER]}, {"anyOf": [NUMBER]}, "alternative 1 of 2 is refused now"),
    ],
)
def test_a_request_that_is_refused_now_breaks_clients(
    old: Schema, new: Schema, reason: str
) -> None:
    assert of_requests(old, new) == [f"POST /a request: {reason}"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (text(pattern="^a$"), text()),
        (text(format="uri"), text()),
        (text(maxLength=5), text(maxLength=9)),
        (one_of(TEXT), one_of(NUMBER, TEXT)),
        (text(maxLength=5), one_of(NUMBER, TEXT)),
        (one_of(text(maxLength=5), text(maxLength=9)), text()),
    ],
)
def test_a_request_that_may_be_more_breaks_no_client(old: Schema, new: Schema) -> None:
    assert of_requests(old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (text(format="date"), text(format="date-time"), "the format date became date-time"),
        (text(format="uri"), text(), "the format uri became None"),
        (one_of(TEXT), one_of(TEXT, NUMBER), "alternative 2 of 2 is new"),
        (one_of(TEXT), one_of(TEXT, NULL), "alternative 2 of 2 is new"),
        (text(), one_of(TEXT, NULL), "alternative 2 of 2 is new"),
        ({"anyOf": [TEXT]}, {"anyOf": [NUMBER, TEXT]}, "alternative 1 of 2 is new"),
    ],
)
def test_an_answer_that_may_be_something_else_breaks_clients(
    old: Schema, new: Schema, reason: str
) -> None:
    assert of_answers(old, new) == [f"POST /a 200: {reason}"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (text(), text(format="uri")),
        (text(pattern="^a$", maxLength=1), text()),
        (one_of(TEXT, NUMBER), one_of(NUMBER)),
        (one_of(TEXT, NULL), text()),
    ],
)
def test_an_answer_that_is_less_general_breaks_no_client(old: Schema, new: Schema) -> None:
    assert of_answers(old, new) == []


class TestAlternativesOfFields:
    """Alternatives that only name the fields of which one is required."""

    COMMON: Schema = {"type": "object", "properties": {"a": TEXT, "b": TEXT, "c": TEXT}}

    def test_an_alternative_that_needs_another_field_breaks_clients(self) -> None:
        old = one_of({"required": ["a"]}, {"required": ["b"]}, **self.COMMON)
        new = one_of({"required": ["a"]}, {"required": ["b", "c"]}, **self.COMMON)
        assert of_requests(old, new) == ["POST /a request: alternative 2 of 2 is refused now"]
        assert of_requests(new, old) == []

    def test_a_change_of_what_they_have_in_common_is_named(self) -> None:
        fields = {"a": text(maxLength=5), "b": TEXT, "c": TEXT}
        old = one_of({"required": ["a"]}, {"required": ["b"]}, **self.COMMON)
        assert of_requests(old, old | {"properties": fields}) == [
            "POST /a request a: maxLength fell to 5"
        ]

    def test_an_alternative_may_contain_its_schema(self) -> None:
        reference = {"$ref": "#/components/schemas/Tree"}
        tree = one_of(TEXT, {"type": "array", "items": reference})
        old = document(request=reference, components={"schemas": {"Tree": tree}})
        assert breaks(old, old) == []
        without = document(request=reference, components={"schemas": {"Tree": one_of(TEXT)}})
        assert breaks(old, without) == ["POST /a request: alternative 2 of 2 is refused now"]


class TestSecurity:
    @pytest.mark.parametrize(
        ("old", "new", "reason"),
        [
            ([], [KEY], "none became key"),
            ([{}, KEY], [KEY], "none became key"),
            ([KEY], [KEY | PASSWORD], "key became key and password"),
            ([KEY, PASSWORD], [KEY], "password became key"),
            ([KEY], [{"key": ["write"]}], "key became key write"),
        ],
    )
    def test_a_requirement_more_breaks_clients(self, old: Any, new: Any, reason: str) -> None:
        found = breaks(document(security=old), document(security=new))
        assert found == [f"POST /a: the security {reason}"]

    @pytest.mark.parametrize(
        ("old", "new"), [([KEY], []), ([KEY], [PASSWORD, KEY]), ([KEY | PASSWORD], [KEY])]
    )
    def test_another_way_in_breaks_no_client(self, old: Any, new: Any) -> None:
        assert breaks(document(security=old), document(security=new)) == []

    def test_a_requirement_of_the_whole_document_counts(self) -> None:
        found = breaks(document(), document() | {"security": [KEY]})
        assert found == ["POST /a: the security none became key"]

    def test_a_scheme_that_becomes_another_breaks_clients(self) -> None:
        bearer, basic = (
            {"securitySchemes": {"key": {"type": "http", "scheme": scheme}}}
            for scheme in ("bearer", "basic")
        )
        old, new = (document(security=[KEY], components=kinds) for kinds in (bearer, basic))
        assert breaks(old, new) == ["the security scheme key became another"]
