"""The guide: served to all who may sign in, searchable, and linked from the pages."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.test import Client

from delivery.console.guide.pages import GUIDE_PAGES
from delivery.console.guide.search import search_guide
from delivery.console.guide.text import guide_text
from delivery.console.navigation import GROUPS, Page

pytestmark = pytest.mark.django_db

SECTIONS = [page for _, pages in GROUPS for page in pages]


@pytest.mark.parametrize("name", GUIDE_PAGES)
def test_a_page_shows_its_text_and_its_plots_and_its_links_resolve(ann: Client, name: str) -> None:
    answer = ann.get(f"/guide/{name}/")
    assert answer.status_code == 200
    assert '<article class="inturn-guide">' in answer.text
    for source in re.findall(r'<img src="([^"]+)"', answer.text):
        assert finders.find(source.removeprefix(settings.STATIC_URL)) is not None, source
    _, _, text = answer.text.partition('id="main-content"')
    links = [
        (page or name, anchor)
        for page, anchor in re.findall(r'href="(?:\.\./([\w-]+)/)?(?:#([\w-]+))?"', text)
    ]
    assert [(page, anchor) for page, anchor in links if not resolves(page, anchor)] == []


def test_every_text_has_a_page() -> None:
    texts = {file.stem for file in Path(settings.BASE_DIR, "templates/guide").glob("*.md")}
    assert texts == set(GUIDE_PAGES)


def test_markdown_tables_become_html_tables(ann: Client) -> None:
    assert '<table tabindex="0">' in ann.get("/guide/speed/").text


def test_an_option_is_not_broken_after_its_hyphens_and_code_is_escaped() -> None:
    html = guide_text("compare").html
    assert '<code><span class="option">--status-column</span></code>' in html
    assert "compared-run&lt;number&gt;.csv" in html


def test_anonymous_readers_are_sent_to_the_login_page(client: Client) -> None:
    for address in ("/guide/", "/guide/speed/", "/guide/?q=lane"):
        answer = client.get(address)
        assert answer.status_code == 302
        assert answer.headers["Location"].startswith("/admin/login/")


def test_a_person_without_a_role_can_read_the_guide(client: Client) -> None:
    client.force_login(User.objects.create_user("new", is_staff=True))
    assert client.get("/guide/speed/").status_code == 200


def test_an_unknown_page_is_404(ann: Client) -> None:
    assert ann.get("/guide/nothing/").status_code == 404


def test_the_sidebar_links_to_the_guide(ann: Client) -> None:
    assert 'href="/guide/"' in ann.get("/admin/").text


def test_the_index_links_to_every_page(ann: Client) -> None:
    index = ann.get("/guide/").text
    assert [name for name in GUIDE_PAGES if f'href="/guide/{name}/"' not in index] == []


def resolves(page: str, anchor: str) -> bool:
    if page not in GUIDE_PAGES:
        return False
    return not anchor or anchor in {section.anchor for section in guide_text(page).sections}


@pytest.mark.parametrize("name", GUIDE_PAGES)
def test_each_heading_has_an_anchor_of_its_own(name: str) -> None:
    anchors = re.findall(r"<h[1-6]([^>]*)>", guide_text(name).html)
    assert all(re.fullmatch(r' id="[\w-]+"', anchor) for anchor in anchors)
    assert len(set(anchors)) == len(anchors)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.title)
def test_each_section_of_the_console_links_to_its_part_of_the_guide(
    ann: Client, section: Page
) -> None:
    page = ann.get(section.address, follow=True).text
    found = re.search(r'inturn-guide-link" href="/guide/([\w-]+)/(?:#([\w-]+))?"', page)
    assert found is not None
    assert resolves(found[1], found[2] or "")


def test_the_overview_and_forms_link_to_the_guide(ann: Client) -> None:
    assert 'inturn-guide-link" href="/guide/console/#traffic-and-health"' in ann.get("/admin/").text
    assert (
        'inturn-guide-link" href="/guide/policies/"'
        in ann.get("/admin/subscriptions/policy/add/").text
    )


def test_the_login_page_links_to_no_guide(client: Client) -> None:
    assert "inturn-guide-link" not in client.get("/admin/login/").text


def test_a_search_finds_the_section_and_links_to_its_anchor(ann: Client) -> None:
    page = ann.get("/guide/", {"q": "rotate SECRET"}).text
    assert 'href="/guide/subscriptions/#rotate-a-signing-secret"' in page
    assert "<mark>" in page


def test_a_section_matches_only_with_all_words() -> None:
    assert [hit.page.name for hit in search_guide("hadoop-aws s3a")] == ["history"]
    assert search_guide("hadoop-aws receipt") == []


def test_a_heading_ranks_above_a_mention() -> None:
    assert search_guide("connection poolers")[0].anchor == "connection-poolers"
    assert search_guide("INTURN_BASE_URL")[0].page.name == "settings"


@pytest.mark.parametrize("name", GUIDE_PAGES)
def test_a_search_for_its_title_finds_each_page(name: str) -> None:
    assert name in {hit.page.name for hit in search_guide(GUIDE_PAGES[name].title)}


def test_a_search_without_result_says_so_and_offers_all_pages(ann: Client) -> None:
    page = ann.get("/guide/", {"q": "zebra"}).text
    assert "No section contains all of these words" in page
    assert 'href="/guide/">see all pages' in page


def test_an_empty_search_shows_the_index(ann: Client) -> None:
    assert "inturn-guide-index" in ann.get("/guide/", {"q": "  "}).text


def test_a_search_text_is_shown_escaped(ann: Client) -> None:
    page = ann.get("/guide/", {"q": "<script>"}).text
    assert "<script>" not in page.split('class="inturn-guide-search"')[1].split("</form>")[0]
    assert "&lt;script&gt;" in page


def test_an_excerpt_is_escaped_and_marks_every_word() -> None:
    excerpt = search_guide("$$-> project")[0].excerpt
    assert "<mark>$$-&gt;</mark>" in excerpt or "<mark>project</mark>" in excerpt
    assert "->" not in excerpt
