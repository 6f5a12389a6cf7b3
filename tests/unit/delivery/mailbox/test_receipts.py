"""A receipt is a text that encodes only its values, and is safe in a URL."""

from urllib.parse import quote
from uuid import UUID

from hypothesis import example, given
from hypothesis import strategies as st

from delivery.mailbox.receipts import Receipt, parse_receipt

receipts = st.builds(Receipt, st.integers(1, 2**63 - 1), st.integers(1, 2**31 - 1), st.uuids())


@given(receipts)
def test_a_receipt_is_read_as_it_was_written(receipt: Receipt) -> None:
    assert parse_receipt(str(receipt)) == receipt


@given(receipts)
def test_a_receipt_needs_no_quoting(receipt: Receipt) -> None:
    assert quote(str(receipt), safe="") == str(receipt)


@given(st.text() | st.text(alphabet="AEgz019_-/+= \n", min_size=36, max_size=44))
def test_other_texts_are_invalid_or_spelled_like_a_receipt(text: str) -> None:
    receipt = parse_receipt(text)
    assert receipt is None or str(receipt) == text


@given(receipts, st.integers(0, 39), st.characters(codec="utf-8"))
@example(Receipt(1, 1, UUID(int=2**128 - 1)), 30, "/")
def test_a_changed_receipt_is_another_or_invalid(
    receipt: Receipt, place: int, character: str
) -> None:
    text = str(receipt)
    changed = text[:place] + character + text[place + 1 :]
    assert changed == text or parse_receipt(changed) != receipt
