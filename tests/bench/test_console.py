"""`bench console --quick`: it creates a small history, and measures every page."""

import tempfile
from pathlib import Path

import orjson
import pytest

from tests.bench.test_bench import bench


@pytest.mark.slow
def test_every_page_is_measured_against_its_limit() -> None:
    with tempfile.TemporaryDirectory() as folder:
        # If PostgreSQL runs as `nobody`, it needs access to the folder.
        Path(folder).chmod(0o711)
        ended = bench("--json", home=Path(folder), name="console")
        assert list(Path(folder).glob("*")) == []
    report = orjson.loads(ended.stdout)
    assert report["bench"] == "console"
    took = {result["name"]: result for result in report["results"]}
    assert all(result["unit"] == "ms" and result["wanted"] == 1 for result in took.values())
    # With so few rows every page is quick on any machine; an error as answer counts as a minute.
    assert [name for name, result in took.items() if result["value"] > 30_000] == []
    for page in (
        "overview",
        "deliveries, far behind",
        "deliveries by subscriber",
        "a subscription",
    ):
        assert took[f"{page}: median"]["limit"] == 150
        assert took[f"{page}: 95th percentile"]["limit"] == 400
