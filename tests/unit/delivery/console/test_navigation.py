"""The sidebar by role, and the one name of each page."""

import re
from html import unescape

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from delivery.console.navigation import GROUPS
from tests.support import factories

PAGES = [page for _, pages in GROUPS for page in pages]


def shown_groups(page: str) -> list[str]:
    sidebar = page.partition('id="nav-sidebar-apps"')[2].partition("</nav>")[0]
    return [heading.strip() for heading in re.findall(r"<h2[^>]*>\s*([\w ]+?)\s*</h2>", sidebar)]


def shown_links(page: str) -> set[str]:
    sidebar = page.partition('id="nav-sidebar-apps"')[2].partition("</nav>")[0]
    return set(re.findall(r'href="([^"]+)"', sidebar))


def member_of(role: str) -> Client:
    user = User.objects.create_user("visitor", is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    client = Client()
    client.force_login(user)
    return client


def heading(page: str) -> str:
    found = re.findall(r"<h1[^>]*>(.*?)</h1>", page, re.DOTALL)
    assert len(found) == 1
    return unescape(str(found[0])).strip()


def tab(page: str) -> str:
    found = re.findall(r"<title>\s*(.*?)\s*</title>", page, re.DOTALL)
    return unescape(str(found[0]))


@pytest.mark.django_db
def test_administrators_see_five_groups(ann: Client) -> None:
    page = ann.get("/admin/").text
    assert shown_groups(page) == ["Now", "Set up", "History", "Audit", "Settings"]
    own = {"My messages", "My deliveries"}
    assert {page.address for page in PAGES if page.title not in own} <= shown_links(page)


@pytest.mark.django_db
def test_the_sidebar_leaves_out_what_one_may_not_see() -> None:
    links = shown_links(member_of("Support").get("/admin/").text)
    assert "/admin/delivery/lane/" in links
    assert "/admin/configuration/" not in links


def test_each_page_has_one_name_and_marks_itself_in_the_sidebar(ann: Client) -> None:
    for page in PAGES:
        shown = ann.get(page.address).text
        assert heading(shown) == page.title
        assert tab(shown) == f"{page.title} — Inturn"
        active = re.findall(r'href="([^"]+)" class="[^"]*\bactive"', shown)
        assert active == ([] if page.title.startswith("My ") else [page.address])


def test_a_form_is_named_by_its_row_and_leads_back_to_its_list(ann: Client) -> None:
    policy = factories.policy("mine", is_built_in=False)
    page = ann.get(f"/admin/subscriptions/policy/{policy.pk}/change/").text
    assert heading(page) == "Edit mine"
    way = page.partition('aria-label="Breadcrumb"')[2].partition("</nav>")[0]
    assert "Set up" in way
    assert 'href="/admin/subscriptions/policy/">Policies</a>' in way
    assert heading(ann.get("/admin/subscriptions/policy/add/").text) == "New policy"


def test_the_way_to_a_message_names_its_list(ann: Client) -> None:
    message = factories.message()
    page = ann.get(f"/admin/delivery/message/{message.pk}/change/").text
    assert heading(page) == message.public_id
    assert 'href="/admin/delivery/message/">Messages</a>' in page
