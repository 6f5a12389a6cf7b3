"""Objects are found by the names that people type; unknown ones are reported with the nearest."""

import pytest

from subscriptions.matching.typed_names import (
    UnknownNameError,
    names_to_suggest,
    nearest,
    object_id,
    subscription_ids,
)
from subscriptions.models import Subscriber, Subscription
from subscriptions.reach import Reach
from tests.support import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def contracts() -> Subscription:
    return factories.subscription("contracts", subscriber=factories.subscriber("demo-billing"))


def test_a_subscription_is_found_by_full_name_name_and_id(contracts: Subscription) -> None:
    other = factories.subscription("contracts", subscriber=factories.subscriber("demo-crm"))
    assert subscription_ids("demo-billing/contracts", reach=None) == [contracts.pk]
    assert set(subscription_ids("contracts", reach=None)) == {contracts.pk, other.pk}
    assert subscription_ids(str(contracts.pk), reach=None) == [contracts.pk]
    assert names_to_suggest(Subscription, 1, reach=None) == ["demo-billing/contracts"]


def test_a_number_that_is_too_long_for_an_id_is_a_name() -> None:
    number = "1" * 20
    with pytest.raises(UnknownNameError, match=f"no subscription '{number}'"):
        subscription_ids(number, reach=None)
    named = factories.subscription(number, subscriber=factories.subscriber("demo-billing"))
    assert subscription_ids(number, reach=None) == [named.pk]
    assert subscription_ids("1" * 18, reach=None) == [int("1" * 18)]


@pytest.mark.parametrize(
    ("typed", "reported"),
    [
        (
            "demo-biling/contracts",
            "There is no subscription 'demo-biling/contracts'. "
            "Did you mean demo-billing/contracts?",
        ),
        (
            "Contract",
            "There is no subscription 'Contract'. Did you mean demo-billing/contracts?",
        ),
        ("zzz", "There is no subscription 'zzz'."),
        ("a\0b", "There is no subscription 'a\\x00b'."),
        ("demo-crm/contracts/x", "There is no subscription 'demo-crm/contracts/x'."),
    ],
)
def test_an_unknown_subscription_is_reported_with_the_nearest(
    contracts: Subscription, typed: str, reported: str
) -> None:
    with pytest.raises(UnknownNameError) as refused:
        subscription_ids(typed, reach=None)
    assert refused.value.detail.startswith(reported)


def test_an_unknown_subscriber_is_reported_with_the_nearest(contracts: Subscription) -> None:
    assert object_id(Subscriber, "demo-billing", reach=None) == contracts.subscriber_id
    with pytest.raises(
        UnknownNameError, match=r"no subscriber 'demo-bill'\. Did you mean demo-billing"
    ):
        object_id(Subscriber, "demo-bill", reach=None)


def test_a_name_is_near_in_another_case_and_as_a_part() -> None:
    assert nearest("SHOP-CRM", ["shop-crm", "shop-erp"]) == "shop-crm"
    assert nearest("crm", ["a-very-long-name-of-crm", "x"]) == "a-very-long-name-of-crm"
    assert nearest("nothing", ["a", "b"]) == ""


LIMITED = Reach(publishers=frozenset({1}))


@pytest.mark.parametrize("name", ["demo-billing/contracts", "contract", "no-such/name"])
def test_a_limited_caller_gets_no_error_and_no_suggestion(
    contracts: Subscription, name: str
) -> None:
    ids = subscription_ids(name, reach=LIMITED)
    assert ids == ([contracts.pk] if name == "demo-billing/contracts" else [])


def test_without_any_reach_every_name_has_the_same_answer(contracts: Subscription) -> None:
    said = set()
    for name in ("demo-billing/contracts", "demo-billing/contract", "none", str(contracts.pk)):
        with pytest.raises(UnknownNameError) as refused:
            subscription_ids(name, reach=Reach())
        said.add(refused.value.detail)
    assert said == {"You may not see subscriptions, so you cannot search by their names."}
    for name in ("demo-billing", "demo-bill", "none"):
        with pytest.raises(UnknownNameError, match="You may not see subscribers"):
            object_id(Subscriber, name, reach=Reach())
    assert names_to_suggest(Subscription, 9, reach=Reach()) == []
    assert names_to_suggest(Subscriber, 9, reach=LIMITED) == []
