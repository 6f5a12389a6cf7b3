"""Saved views: filters of a list under a name, and who may share, rename and delete them."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from subscriptions.models import SavedView

DELIVERIES = "/admin/delivery/delivery/"
FAILED = "subscriber=shop-crm&tab=failed"


def person(name: str, role: str) -> Client:
    user = User.objects.create_user(name, is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def sue(db: None) -> Client:
    return person("sue", "Support")


@pytest.fixture
def ada(db: None) -> Client:
    return person("ada", "Auditors")


def save(client: Client, name: str, query: str = FAILED, **fields: Any) -> Any:
    given = {"list": "delivery.delivery", "name": name, "query": query, **fields}
    return client.post("/admin/views/save/", given)


def names(client: Client) -> list[str]:
    page = client.get(DELIVERIES).text
    return [view.name for view in SavedView.objects.all() if f">{view.name}</a>" in page]


def test_the_present_filters_are_saved_under_a_name_and_shown_above_the_list(sue: Client) -> None:
    page = sue.get(f"{DELIVERIES}?tab=failed&subscriber=shop-crm&before=99&open=7").text
    assert 'name="query" value="subscriber=shop-crm&amp;tab=failed"' in page
    answer = save(sue, " Night  shift ", "tab=failed&subscriber=shop-crm&before=99&open=7")
    assert answer.headers["Location"] == f"{DELIVERIES}?{FAILED}"
    page = sue.get(f"{DELIVERIES}?tab=failed&subscriber=shop-crm").text
    assert 'href="?subscriber=shop-crm&amp;tab=failed"' in page
    assert "Edit view" in page
    assert "Save view" not in page
    assert names(sue) == ["Night shift"]
    assert ">Night shift</a>" not in sue.get("/admin/delivery/message/").text


def test_a_view_is_its_owners_until_it_is_shared(sue: Client, ada: Client) -> None:
    save(sue, "Mine")
    save(sue, "Ours", shared="1")
    assert names(sue) == ["Mine", "Ours"]
    assert names(ada) == ["Ours"]


def test_saving_again_replaces_the_view_of_that_name(sue: Client) -> None:
    save(sue, "Mine")
    save(sue, "Mine", "tab=waiting")
    assert list(SavedView.objects.values_list("query", flat=True)) == ["tab=waiting"]


def test_the_owner_renames_and_deletes(sue: Client) -> None:
    save(sue, "Mine")
    save(sue, "Other", "tab=waiting")
    view = SavedView.objects.get(name="Mine")
    sue.post(f"/admin/views/{view.pk}/rename/", {"name": "Other"})
    assert "You have a view with the name Other already." in sue.get(DELIVERIES).text
    sue.post(f"/admin/views/{view.pk}/rename/", {"name": "New"})
    assert names(sue) == ["New", "Other"]
    sue.post(f"/admin/views/{view.pk}/delete/")
    assert names(sue) == ["Other"]


def test_only_people_who_change_deliveries_share_and_change_shared_ones(
    sue: Client, ada: Client
) -> None:
    save(ada, "Ada's")
    assert save(ada, "Theirs", shared="1").status_code == 403
    save(sue, "Ours", shared="1")
    save(sue, "Sue's")
    ours, sues, adas = (SavedView.objects.get(name=name) for name in ("Ours", "Sue's", "Ada's"))
    for verb in ("rename", "delete"):
        assert ada.post(f"/admin/views/{ours.pk}/{verb}/", {"name": "x"}).status_code == 403
        assert ada.post(f"/admin/views/{sues.pk}/{verb}/", {"name": "x"}).status_code == 404
        assert sue.post(f"/admin/views/{adas.pk}/{verb}/", {"name": "x"}).status_code == 404
    bob = person("bob", "Support")
    assert bob.post(f"/admin/views/{ours.pk}/rename/", {"name": "All's"}).status_code == 302
    assert SavedView.objects.get(pk=ours.pk).name == "All's"


def test_no_view_is_saved_of_a_list_that_one_may_not_see(client: Client, db: None) -> None:
    assert save(client, "x").headers["Location"].startswith("/admin/login/")
    client.force_login(User.objects.create_user("nobody", is_staff=True))
    assert save(client, "x").status_code == 404
    assert client.get("/admin/views/save/").status_code == 405
    assert not SavedView.objects.exists()
