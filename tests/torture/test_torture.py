"""A short torture run as part of the full suite."""

from pathlib import Path

import pytest

from tests.torture.run import torture


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_tortured_product_keeps_its_promises(tmp_path: Path) -> None:
    result = torture(tmp_path, seconds=60, seed=17)
    assert not result.findings, result.report()
    # Every kind of fault had its turn, or the run says little.
    assert result.messages > 200
    assert result.crashes >= 4
    assert result.resent
    assert result.held
