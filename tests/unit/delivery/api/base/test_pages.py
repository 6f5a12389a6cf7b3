"""Lists come in pages that lose nothing and repeat nothing."""

from dataclasses import replace

import pytest
from django.conf import settings
from pytest_django import DjangoAssertNumQueries, Settings

from tests.support import factories
from tests.unit.delivery.api.client import Caller

NAMES = ["a", "b", "b.b", "b-c", "c", "d", "e"]


def names_of_all_pages(manager: Caller, path: str) -> list[str]:
    names: list[str] = []
    url: str | None = path
    while url:
        page = manager.get(url).body
        assert len(page["results"]) <= 3
        names += [row["name"] for row in page["results"]]
        url = page["next"]
    return names


def test_pages_follow_each_other_by_absolute_links(manager: Caller) -> None:
    for name in NAMES:
        factories.subscriber(name)
    assert sorted(names_of_all_pages(manager, "subscribers?limit=3")) == sorted(NAMES)
    following = manager.get("subscribers?limit=3").body["next"]
    assert following.startswith(f"{settings.ENVIRONMENT.base_url}/api/v1/subscribers?")
    assert "limit=3" in following


def test_behind_a_proxy_links_are_as_its_clients_see_them(
    manager: Caller, settings: Settings
) -> None:
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, base_url="https://broker.example")
    for name in NAMES[:2]:
        factories.subscriber(name)
    following = manager.get("subscribers?limit=1").body["next"]
    assert following == "https://broker.example/api/v1/subscribers?limit=1&after=a"


def test_the_last_page_that_is_full_has_no_next(manager: Caller) -> None:
    for name in NAMES[:3]:
        factories.subscriber(name)
    assert manager.get("subscribers?limit=3").body["next"] is None


def test_a_link_keeps_the_selection(manager: Caller) -> None:
    event_type = factories.event_type("A b".replace(" ", "."))
    for _ in range(4):
        factories.subscription(event_type=event_type)
    factories.subscription()
    page = manager.get("subscriptions?event_type=A.b&limit=2").body
    assert "event_type=A.b" in page["next"]
    second = manager.get(page["next"]).body
    assert len(second["results"]) == 2
    assert second["next"] is None


def test_rows_created_meanwhile_do_not_shift_a_page(manager: Caller) -> None:
    for name in NAMES:
        factories.subscriber(name)
    page = manager.get("subscribers?limit=3").body
    factories.subscriber("0")
    seen = [row["name"] for row in page["results"]]
    assert not set(seen) & {row["name"] for row in manager.get(page["next"]).body["results"]}


@pytest.mark.parametrize("path", ["event-types", "subscribers", "policies", "keys"])
def test_a_list_needs_one_query_and_the_key(
    manager: Caller, path: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    manager.get(path)
    for _ in range(3):
        factories.event_type()
        factories.subscriber()
        factories.policy()
        factories.api_key()
    with django_assert_num_queries(2):
        assert len(manager.get(path).body["results"]) >= 3
