"""A plot of the bench is a whole SVG file, with a point for each step of each line."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.bench.paced import PublishingPace, _moments
from tests.bench.plots import Panel, ceiling, write
from tests.bench.results import at_most, percentile

SVG = "{http://www.w3.org/2000/svg}"


def test_each_value_has_its_point_and_each_step_its_name(tmp_path: Path) -> None:
    file = tmp_path / "made" / "plot.svg"
    panels = (
        Panel(title="Rate, /s", lines={"": [100.0, 4000.0]}),
        Panel(title="Times <ms>", lines={"p50": [1.5, 2.0], "p99": [9.0, 30.0]}),
    )
    write(file, panels, steps=["10", "100"], steps_are="subscribers")
    drawn = ElementTree.parse(file).getroot()  # noqa: S314 - our own file
    assert len(list(drawn.iter(f"{SVG}circle"))) == 6
    texts = [text.text for text in drawn.iter(f"{SVG}text")]
    assert {"Rate, /s", "Times <ms>", "10", "100", "subscribers", "— p50"} <= set(texts)


@pytest.mark.parametrize(
    ("value", "top"), [(0.4, 0.4), (1, 1), (3.2, 4), (41, 50), (8_150, 10_000), (99_999, 100_000)]
)
def test_the_axis_ends_at_a_round_number_above_all(value: float, top: float) -> None:
    assert ceiling(value) == pytest.approx(top)


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(number) for number in range(1, 101)]
    assert (percentile(values, 50), percentile(values, 99), percentile([7.0], 99)) == (50, 99, 7)


def test_a_figure_without_a_limit_is_printed_and_not_judged() -> None:
    reported = at_most("bare", 0.34, None, unit="ms")
    assert (reported.is_met, reported.as_json()["wanted"], reported.as_json()["met"]) == (
        None,
        None,
        None,
    )
    assert "0.3 ms" in reported.as_text()
    assert at_most("p50", 4.4, 4.5, unit="ms").is_met
    assert not at_most("p50", 4.6, 4.5, unit="ms").is_met


def test_a_pace_is_the_same_in_every_run_and_never_turns_back() -> None:
    pace = PublishingPace(port=1, event_type="x", key="", rate=50, seconds=2)
    moments = _moments(pace)
    assert len(moments) == 100
    assert moments == _moments(pace) == sorted(moments)
    assert max(moments) < 2 + 1 / 50
