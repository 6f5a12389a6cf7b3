"""Filters of one meaning have one normal form."""

import pytest

from subscriptions.filters import normal_form, parse_filter


@pytest.mark.parametrize(
    "text",
    [
        "$$->'Body'->>'id'='x' and not($$->'Header'->>'PRIORITY' in('low','it''s'))",
        "$$ -> ‘Body’ ->> ‘id’ = ‘x’ AND NOT $$->'Header'->>'priority' IN ( 'low' , 'it''s' )",
        "(('x' = $$->'Body'->>'id')) And\n$$->'Header'->>'Priority' not in ('low', 'it''s')",
    ],
)
def test_one_filter_has_one_normalised_text(text: str) -> None:
    assert (
        normal_form(parse_filter(text))
        == "$$->'Body'->>'id' = 'x' AND NOT $$->'Header'->>'priority' in ('low', 'it''s')"
    )


@pytest.mark.parametrize(
    "text",
    [
        (
            "($$->'Body'->>'a' = 1.5 OR $$->'Body'->-2 is null) "
            "AND NOT ($$->'Body' ? 'a' AND $$->>'Body' like '%''')"
        ),
        (
            "$$->'Body'->'a' < $$->'Header'->'b' OR $$->'Body'->'a' != null "
            "AND $$->'Body'->'a' in (true, false, 5)"
        ),
        (
            "$$->'Body'->'a' @> '[{\"a\": \"it''s\"}]' OR "
            "$$->'Body'->>'a' < timestamptz '2022-12-12T00:00:00.000001+00:00'"
        ),
    ],
)
def test_normalised_text_is_its_own_normalised_text(text: str) -> None:
    assert normal_form(parse_filter(text)) == text


def test_different_filters_have_different_normalised_texts() -> None:
    texts = [
        "= 5",
        "= '5'",
        "= 'true'",
        "= true",
        "!= 5",
        "in (5, 6)",
        "in ('5, 6')",
        "in ('5'', ''6')",
        "like '5'",
    ]
    assert len({normal_form(parse_filter(f"$$->'Body'->>'a' {text}")) for text in texts}) == len(
        texts
    )
