"""The guide is served to everybody who may sign in to the console, and to nobody else."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.test import Client

from delivery.console.guide import GUIDE_PAGES

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", GUIDE_PAGES)
def test_each_page_shows_its_text_and_its_plots(ann: Client, name: str) -> None:
    answer = ann.get(f"/guide/{name}/")
    assert answer.status_code == 200
    assert '<article class="inturn-guide">' in answer.text
    for source in re.findall(r'<img src="([^"]+)"', answer.text):
        assert finders.find(source.removeprefix(settings.STATIC_URL)) is not None, source


def test_every_text_has_its_page() -> None:
    texts = {file.stem for file in Path(settings.BASE_DIR, "templates/guide").glob("*.md")}
    assert texts == set(GUIDE_PAGES)


def test_tables_are_tables(ann: Client) -> None:
    assert "<table>" in ann.get("/guide/speed/").text


def test_who_is_not_signed_in_is_asked_to(client: Client) -> None:
    answer = client.get("/guide/speed/")
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/admin/login/")


def test_what_the_guide_does_not_have_is_404(ann: Client) -> None:
    assert ann.get("/guide/nothing/").status_code == 404


def test_the_sidebar_leads_to_it(ann: Client) -> None:
    assert 'href="/guide/"' in ann.get("/admin/").text


def test_the_index_leads_to_every_page(ann: Client) -> None:
    index = ann.get("/guide/").text
    assert [name for name in GUIDE_PAGES if f'href="/guide/{name}/"' not in index] == []


@pytest.mark.parametrize("name", GUIDE_PAGES)
def test_links_between_pages_lead_somewhere(ann: Client, name: str) -> None:
    text = ann.get(f"/guide/{name}/").text
    assert set(re.findall(r'href="\.\./([\w-]+)/"', text)) <= set(GUIDE_PAGES)
