"""`bench deliver --quick`: it measures everything, prints JSON, and leaves no files behind."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from config.env import CHECKOUT
from config.up.processes import processes_with
from tests.bench.console import GIVEN_UP_MS
from tests.system.operation.installation import eventually

pytestmark = pytest.mark.long
RESULT = {
    "name": str,
    "value": float,
    "unit": str,
    "limit": float,
    "ratio": float,
    "wanted": float,
    "met": bool,
}


def bench(*options: str, home: Path, name: str = "deliver") -> subprocess.CompletedProcess[str]:
    # The benchmark creates everything in the temporary folder: with a separate folder, leftovers
    # are visible.
    environment = os.environ | {"TMPDIR": str(home)}
    ended = subprocess.run(
        [sys.executable, str(CHECKOUT / "manage.py"), "bench", name, "--quick", *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    # `up` warns of an old Python; it is no fault of the benchmark.
    lines = ended.stderr.splitlines(keepends=True)
    ended.stderr = "".join(line for line in lines if "warning: Python" not in line)
    return ended


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        # If PostgreSQL runs as `nobody`, it needs access to the folder.
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.mark.slow
def test_a_benchmark_prints_only_results_and_cleans_up(home: Path) -> None:
    """A single test: run in parallel, each of several tests would start with another bench."""
    ended = bench("--json", home=home)
    assert (ended.returncode, ended.stderr) == (0, "")
    report = orjson.loads(ended.stdout)
    insist_on_the_promised_shape(report)
    insist_that_each_number_stands_beside_its_limit(report)
    insist_that_everything_came_once_and_in_order(report)
    assert list(home.glob("*")) == []
    assert (
        str(home)
        not in subprocess.run(["ps", "-ef"], capture_output=True, text=True, check=True).stdout
    )


def insist_on_the_promised_shape(report: dict[str, Any]) -> None:
    assert set(report) == {"bench", "machine", "results", "receiver"}
    assert report["bench"] == "deliver"
    assert set(report["machine"]) == {"processor", "cores", "system", "python", "postgresql"}
    for result in report["results"]:
        assert set(result) == set(RESULT)
        for name, kind in RESULT.items():
            assert isinstance(result[name], int | float if kind is float else kind), (name, result)


def insist_that_each_number_stands_beside_its_limit(report: dict[str, Any]) -> None:
    assert [(result["wanted"], result["unit"]) for result in report["results"]] == [
        (0.65, "/s"),
        (4, "/s"),
        (0.45, "/s"),
        (0.8, "/s"),
        (0.8, "/s"),
        (1, "MB"),
        (0.9, "/s"),
    ]
    # With a single round the median is the round's ratio. Before it, two numbers were rounded.
    for result in report["results"]:
        value, limit = result["value"], result["limit"]
        assert result["ratio"] >= (value - 0.05) / (limit + 0.05) - 0.001
        assert result["ratio"] <= (value + 0.05) / (limit - 0.05) + 0.001


def insist_that_everything_came_once_and_in_order(report: dict[str, Any]) -> None:
    # 10 lanes × 20 messages, 3 lanes × 20, 50 for a lane alone, twice 45 healthy lanes × 4, and
    # twice 10 lanes × 20 for the retries.
    expected = 200 + 60 + 50 + 2 * 180 + 2 * 200
    assert report["receiver"] == {
        "expected": expected,
        "got": expected,
        "lost": 0,
        "duplicated": 0,
        "out_of_order": 0,
    }


@pytest.mark.slow
def test_queue_senders_are_measured_too(home: Path) -> None:
    ended = bench("--json", home=home, name="queue")
    assert ended.returncode == 0, ended.stderr
    report = orjson.loads(ended.stdout)
    assert report["bench"] == "queue"
    assert [(result["wanted"], result["unit"]) for result in report["results"]] == [(0.3, "/s")]
    assert (report["receiver"]["expected"], report["receiver"]["got"]) == (100, 100)


@pytest.mark.slow
def test_scripted_lanes_are_measured_too(home: Path) -> None:
    ended = bench("--json", home=home, name="scripts")
    assert ended.returncode == 0, ended.stderr
    report = orjson.loads(ended.stdout)
    wanted = [result["wanted"] for result in report["results"] if result["wanted"] is not None]
    assert wanted == [1, 0.9, 0.9]
    # Thrice 200 by the lane without a script, and 200 by the other lanes; then twice 40 and 200.
    assert (report["receiver"]["expected"], report["receiver"]["got"]) == (1680, 1680)


@pytest.mark.slow
def test_mailboxes_are_measured_too(home: Path) -> None:
    ended = bench("--json", home=home, name="mailbox")
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    report = orjson.loads(ended.stdout)
    assert report["bench"] == "mailbox"
    results = [(result["wanted"], result["unit"]) for result in report["results"]]
    assert results == [(0.25, "/s"), (1.2, "µs")]
    # 300 by clients, and twice 100 each from the deep and the shallow mailbox.
    counts = {"expected": 700, "got": 700, "lost": 0, "duplicated": 0, "out_of_order": 0}
    assert report["receiver"] == counts
    assert list(home.glob("*")) == []


@pytest.mark.slow
def test_results_are_printed_as_lines(home: Path) -> None:
    ended = bench("--only", "alone", "--rounds", "2", home=home)
    assert ended.returncode == 0, ended.stderr
    machine, result, receipt = ended.stdout.splitlines()
    assert "postgresql" in machine
    assert result.startswith("one lane alone, of POST and commit in turn")
    assert "at least 0.8" in result
    assert receipt == "100 expected, 100 got, 0 lost, 0 duplicated, 0 out of order"


@pytest.mark.slow
def test_an_interrupted_benchmark_ends_its_processes(home: Path) -> None:
    mark = f"TMPDIR={home}"
    command = [sys.executable, str(CHECKOUT / "manage.py"), "bench", "deliver", "--only", "alone"]
    with subprocess.Popen(
        command,
        env=os.environ | {"TMPDIR": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            eventually(
                lambda: any(
                    "tests.bench.sender" in command_of(pid) for pid in processes_with(mark)
                ),
                "a sender is started",
            )
            process.terminate()
            assert process.wait(60) == 1
        finally:
            process.kill()
    assert processes_with(mark) == set()
    assert list(home.glob("*")) == []


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:  # The process has ended meanwhile.
        return ""


@pytest.mark.slow
def test_publishing_is_measured_too(home: Path) -> None:
    ended = bench("--json", home=home, name="publish")
    assert ended.returncode == 0, ended.stderr
    report = orjson.loads(ended.stdout)
    assert report["bench"] == "publish"
    results = [(result["wanted"], result["unit"]) for result in report["results"]]
    assert results == [
        *((0.5, "/s"), (0.9, "/s"), (0.9, "/s"), (0.5, "/s")),
        *((1, "ms"), (1, "ms"), (None, "ms"), (1, "ms")),
    ]
    # 500 deliveries or a message per connection, whichever is more, for each of three loads; and 16
    # batches.
    counts = {"expected": 1778, "got": 1778, "lost": 0, "duplicated": 0, "out_of_order": 0}
    assert report["receiver"] == counts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "units"),
    [
        ("latency", ["ms"] * 18),
        ("idle", ["MB", "%", "", *["MB", "%", ""] * 4, "s", "s"]),
        ("cost", ["", "", ""]),
    ],
)
def test_a_started_product_is_measured_too(home: Path, name: str, units: list[str]) -> None:
    ended = bench("--json", home=home, name=name)
    assert ended.returncode == 0, ended.stderr
    report = orjson.loads(ended.stdout)
    assert report["bench"] == name
    assert [result["unit"] for result in report["results"]][: len(units)] == units
    # A value without a limit is only reported.
    for result in report["results"]:
        assert (result["wanted"] is None) == (result["met"] is None)
    assert report["receiver"]["got"] == report["receiver"]["expected"]
    assert list(home.glob("*")) == []


@pytest.mark.slow
def test_publishing_is_measured_together_with_delivering(home: Path) -> None:
    ended = bench("--json", "--only", "ten", home=home, name="together")
    assert ended.returncode == 0, ended.stderr
    report = orjson.loads(ended.stdout)
    rate, backlog = report["results"][:2]
    assert (rate["wanted"], rate["unit"], backlog["wanted"]) == (0.6, "/s", 1)
    assert report["receiver"]["lost"] == report["receiver"]["duplicated"] == 0


@pytest.mark.slow
def test_two_machines_are_measured_and_one_is_killed(home: Path) -> None:
    ended = bench("--json", "--only", "direct", home=home, name="machines")
    assert ended.returncode == 0, ended.stderr
    report = orjson.loads(ended.stdout)
    found = {result["name"]: result for result in report["results"]}
    assert found["2 × direct: delivered, of one instance"]["wanted"] == 0.8
    assert found["  one killed: longest from publisher to receiver"]["unit"] == "s"
    assert found["  instances that sent"]["value"] >= 1
    assert report["receiver"]["lost"] == report["receiver"]["duplicated"] == 0
    assert list(home.glob("*")) == []


@pytest.mark.slow
def test_the_costs_of_many_subscriptions_are_measured(home: Path) -> None:
    ended = bench("--json", "--only", "configuration", home=home, name="scale")
    assert ended.returncode == 0, ended.stderr
    report = orjson.loads(ended.stdout)
    names = [result["name"] for result in report["results"]]
    assert "100 subscriptions: matching a message" in names
    assert "100 subscriptions: to everybody: next, received by all" in names
    assert report["receiver"]["got"] == report["receiver"]["expected"] > 0


@pytest.mark.slow
def test_plots_are_written(home: Path) -> None:
    folder = home / "plots"
    ended = bench(
        "--seconds", "0.5", "--only", "subscribers", "--plot", str(folder), home=home, name="scale"
    )
    assert ended.returncode == 0, ended.stderr
    assert [file.name for file in home.glob("*/*")] == ["by-subscribers.svg"]


@pytest.mark.slow
def test_growth_is_measured_beside_stored_deliveries(home: Path) -> None:
    folder = home / "plots"
    ended = bench(
        "--seconds",
        "0.5",
        "--only",
        "stored",
        "--plot",
        str(folder),
        "--json",
        home=home,
        name="scale",
    )
    assert ended.returncode == 0, ended.stderr
    report = orjson.loads(ended.stdout)
    names = [result["name"] for result in report["results"]]
    assert "2,000 stored deliveries: accepted" in names
    assert (
        names.count("  page: overview, median")
        == names.count("  a retention pass without removals")
        == 2
    )
    assert all(0 < result["value"] < GIVEN_UP_MS for result in report["results"])
    assert [file.name for file in folder.iterdir()] == ["by-stored-deliveries.svg"]
