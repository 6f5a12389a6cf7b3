"""A search finds a text in whatever way the publisher's JSON writes it."""

import json

import pytest

from delivery.support.search import Search
from delivery.support.written_texts import ways_to_write
from tests.support import factories
from tests.unit.delivery.support.test_search import ids, walked

MUELLER = {
    "UTF-8": json.dumps({"name": "Jürgen Müller"}, ensure_ascii=False),
    "Python": json.dumps({"name": "Jürgen Müller"}),
    "dotNET": '{"name":"J\\u00FCrgen M\\u00FCller"}',
}


@pytest.mark.django_db
class TestFoundHoweverItWasWritten:
    @pytest.mark.parametrize("typed", ["Müller", "Jürgen Müller", "M\\u00fcller", "M\\u00FCller"])
    def test_an_umlaut(self, typed: str) -> None:
        wanted = [factories.message(body.encode()).pk for body in MUELLER.values()]
        factories.message(b'{"name": "Moller, M\\\\u00e4ller"}')
        assert ids(walked(Search(body=typed))) == wanted[::-1]

    @pytest.mark.parametrize("typed", ['"name":"Jürgen Müller"', '"name": "Jürgen Müller"'])
    def test_a_name_with_its_value_with_a_space_or_without(self, typed: str) -> None:
        wanted = [factories.message(body.encode()).pk for body in MUELLER.values()]
        assert ids(walked(Search(body=typed))) == wanted[::-1]

    def test_a_number_after_its_name(self) -> None:
        wanted = [factories.message(body).pk for body in (b'{"id": 1005}', b'{"id":1005}')]
        factories.message(b'{"id": 2005}')
        assert ids(walked(Search(body='"id":1005'))) == wanted[::-1]

    def test_slashes_quotation_marks_and_signs_beyond_16_bits(self) -> None:
        text = 'see https://a.example/b, "now" 😀'
        wanted = [
            factories.message(body.encode()).pk
            for body in (
                text,
                json.dumps([text]),
                json.dumps([text], ensure_ascii=False),
                json.dumps([text]).replace("/", "\\/"),
            )
        ]
        assert ids(walked(Search(body=text))) == wanted[::-1]


@pytest.mark.parametrize("text", ["needle", "order 4711", "$->x", "a_b%c"])
def test_a_plain_text_is_searched_once(text: str) -> None:
    assert ways_to_write(text) == [text.encode()]


@pytest.mark.parametrize("text", ["\\u", "\\ud83d", "\\u0000", "\\\\u00fc", "\\u00g0"])
def test_what_is_no_character_is_searched_as_typed(text: str) -> None:
    assert ways_to_write(text)[0] == text.encode()
