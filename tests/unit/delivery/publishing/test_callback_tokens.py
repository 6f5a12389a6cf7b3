"""Callback tokens: computed whenever they are needed, and impossible to guess."""

import base64
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.publishing.callback_tokens import callback_key, callback_url, make_token, read_token

KEY = callback_key("the secret of this installation")
IDS = st.integers(1, 10**18 - 1)


@given(IDS)
def test_a_token_leads_to_its_callback_and_no_other(id: int) -> None:
    token = make_token(id, key=KEY)
    assert read_token(token, key=KEY) == id
    assert set(token) <= set(string.ascii_letters + string.digits + "-_.")


def test_the_same_token_is_made_after_a_restart_and_on_every_machine_with_the_secret() -> None:
    callback_key.cache_clear()
    assert make_token(7, key=callback_key("the secret of this installation")) == make_token(
        7, key=KEY
    )
    # Fixed: another version must accept the tokens of this one.
    assert make_token(7, key=KEY) == "7.kQCGiXOgla4UyDfNuz3Mdzs2"


def test_another_secret_makes_other_tokens() -> None:
    assert read_token(make_token(7, key=callback_key("another")), key=KEY) is None


def test_the_key_is_of_this_purpose_alone() -> None:
    assert KEY != b"the secret of this installation"
    assert len(KEY) == 32


def test_a_code_has_more_than_128_bits() -> None:
    assert len(base64.urlsafe_b64decode(make_token(7, key=KEY).partition(".")[2])) * 8 >= 128


@given(IDS, st.integers(0, 23), st.sampled_from(string.ascii_letters + string.digits + "-_"))
def test_a_token_changed_in_one_character_is_refused(id: int, at: int, character: str) -> None:
    head, _, code = make_token(id, key=KEY).partition(".")
    forged = f"{head}.{code[:at]}{character}{code[at + 1 :]}"
    assert read_token(forged, key=KEY) == (id if code[at] == character else None)


@given(IDS, IDS)
def test_a_code_is_of_one_id(first: int, second: int) -> None:
    forged = f"{second}.{make_token(first, key=KEY).partition('.')[2]}"
    assert read_token(forged, key=KEY) == (first if first == second else None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "7",
        "7.",
        ".abc",
        "07.{code}",
        "+7.{code}",
        "7.{code}=",
        "7.{code} ",
        " 7.{code}",
        "7.{code}\n",
        "٧.{code}",
    ],
)
def test_a_token_in_another_spelling_is_refused(text: str) -> None:
    code = make_token(7, key=KEY).partition(".")[2]
    assert read_token(text.format(code=code), key=KEY) is None


@given(st.text(max_size=60))
def test_any_text_is_parsed_without_an_error(text: str) -> None:
    assert read_token(text, key=KEY) is None


def test_the_url_is_below_the_address_that_people_use() -> None:
    url = callback_url(7, base_url="https://broker.example.com/inturn", key=KEY)
    assert url == f"https://broker.example.com/inturn/callbacks/{make_token(7, key=KEY)}"
