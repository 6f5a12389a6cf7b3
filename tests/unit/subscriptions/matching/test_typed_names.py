"""Objects are found by the names that people type; unknown ones are reported with the nearest."""

import pytest

from subscriptions.matching.typed_names import (
    UnknownNameError,
    nearest,
    object_id,
    subscription_ids,
    subscription_names,
)
from subscriptions.models import Subscriber, Subscription
from tests.support import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def contracts() -> Subscription:
    return factories.subscription("contracts", subscriber=factories.subscriber("demo-billing"))


def test_a_subscription_is_found_by_full_name_name_and_id(contracts: Subscription) -> None:
    other = factories.subscription("contracts", subscriber=factories.subscriber("demo-crm"))
    assert subscription_ids("demo-billing/contracts") == [contracts.pk]
    assert set(subscription_ids("contracts")) == {contracts.pk, other.pk}
    assert subscription_ids(str(contracts.pk)) == [contracts.pk]
    assert subscription_names(1) == ["demo-billing/contracts"]


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
        subscription_ids(typed)
    assert refused.value.detail.startswith(reported)


def test_an_unknown_subscriber_is_reported_with_the_nearest(contracts: Subscription) -> None:
    assert object_id(Subscriber, "demo-billing") == contracts.subscriber_id
    with pytest.raises(
        UnknownNameError, match=r"no subscriber 'demo-bill'\. Did you mean demo-billing"
    ):
        object_id(Subscriber, "demo-bill")


def test_a_name_is_near_in_another_case_and_as_a_part() -> None:
    assert nearest("SHOP-CRM", ["shop-crm", "shop-erp"]) == "shop-crm"
    assert nearest("crm", ["a-very-long-name-of-crm", "x"]) == "a-very-long-name-of-crm"
    assert nearest("nothing", ["a", "b"]) == ""
