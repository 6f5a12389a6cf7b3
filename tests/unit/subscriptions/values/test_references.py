"""A subscription is found by what people type, the same in each place that reads it."""

import pytest

from subscriptions.values.references import subscription_condition


@pytest.mark.parametrize(
    ("typed", "condition"),
    [
        ("42", {"pk": 42}),
        ("007", {"pk": 7}),
        ("9" * 18, {"pk": int("9" * 18)}),
        # Longer than any id, so it is a name: names may begin with digits.
        ("9" * 19, {"name": "9" * 19}),
        ("٤٢", {"name": "٤٢"}),
        ("contracts", {"name": "contracts"}),
        ("billing/contracts", {"subscriber__name": "billing", "name": "contracts"}),
        ("billing/42", {"subscriber__name": "billing", "name": "42"}),
        ("/contracts", {"subscriber__name": "", "name": "contracts"}),
        ("a/b/c", {"subscriber__name": "a", "name": "b/c"}),
    ],
)
def test_an_id_a_name_and_both_names_are_told_apart(
    typed: str, condition: dict[str, str | int]
) -> None:
    assert subscription_condition(typed) == condition


def test_the_condition_has_the_columns_of_the_reader() -> None:
    columns = {"id": "subscription_id", "name": "subscription", "subscriber": "subscriber"}
    assert subscription_condition("42", **columns) == {"subscription_id": 42}
    assert subscription_condition("a/b", **columns) == {"subscriber": "a", "subscription": "b"}
