"""Each comparison that Adobe documents for event subscriptions, with messages on both sides.

`workfront_documented.json` has the documents of Adobe's page *Event Subscription API* (its examples
and notes of September 2026) and payloads that each filter matches and does not match.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from delivery.vendors.workfront.translate import translate_document
from subscriptions.filters import document, parse_filter, to_python

CASES = json.loads(Path(__file__).with_name("workfront_documented.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=[case["comparison"] for case in CASES])
def test_a_documented_filter_matches_what_adobe_says(case: dict[str, Any]) -> None:
    found = translate_document(case["document"])
    assert found.reasons == []
    matches = to_python(parse_filter(found.filter))
    for payload in case["matches"]:
        assert matches(document({}, json.dumps(payload).encode())), payload
    for payload in case["matches_not"]:
        assert not matches(document({}, json.dumps(payload).encode())), payload
