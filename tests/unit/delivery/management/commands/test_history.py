"""`history`: its output and its exit codes."""

import io

import pytest
from django.core.management import CommandError, call_command

from delivery.management.history_running import run_in_words
from delivery.models import PipelineRun, RunState, Step
from tests.unit.delivery.pipeline import rows


def history(*arguments: str) -> str:
    out = io.StringIO()
    call_command("history", *arguments, stdout=out)
    return out.getvalue()


def refused(*arguments: str) -> CommandError:
    with pytest.raises(CommandError) as ended:
        history(*arguments)
    return ended.value


@pytest.mark.django_db(transaction=True)
class TestRunning:
    def test_a_step_runs_and_prints_its_result(self) -> None:
        said = history("export")
        run = PipelineRun.objects.get()
        assert said.startswith(f"export {run.pk}: DONE in ")
        assert "messages 0" in said
        assert run.asked_by.endswith("command line)")

    def test_a_second_one_is_refused_with_an_exit_code_of_its_own(self) -> None:
        first = rows.run(state=RunState.RUNNING)
        with rows.held(first):
            error = refused("export")
        assert error.returncode == 3
        assert str(error).startswith(f"export {first.pk} has been running since ")

    def test_a_run_that_is_not_waiting_is_not_run(self) -> None:
        done = rows.run(state=RunState.DONE)
        error = refused("run", str(done.pk))
        assert error.returncode == 3
        assert "it is DONE" in str(error)
        assert f"no run {done.pk + 1}" in str(refused("run", str(done.pk + 1)))

    def test_a_waiting_run_is_run(self) -> None:
        run = rows.run()
        history("run", str(run.pk))
        run.refresh_from_db()
        assert run.state == RunState.DONE


@pytest.mark.django_db
class TestListing:
    def test_the_newest_runs_are_a_line_each(self) -> None:
        rows.run(Step.VERIFY, RunState.DONE, done=3000)
        rows.run(Step.EXPORT, RunState.FAILED, error="no\x1b room")
        rows.run(Step.ROLLUP, asked_by="ann")
        _, rollup, export, verify = history("runs").splitlines()
        assert "WAITING" in rollup
        assert "requested by ann" in rollup
        assert "\x1b" not in export
        assert "room" in export
        assert verify.split()[2:] == [
            *verify.split()[2:5],
            "30.0",
            "3,000",
            "100",
            *verify.split()[8:],
        ]

    def test_a_killed_run_is_shown_as_killed(self) -> None:
        rows.run(state=RunState.RUNNING)
        assert "FAILED" in history("runs")

    @pytest.mark.parametrize("count", ["0", "1001"])
    def test_a_limit_that_is_too_high_is_refused(self, count: str) -> None:
        assert "--count must be from 1 to 1000" in str(refused("runs", "-n", count))


def test_results_are_printed_as_lines() -> None:
    result = {
        "verdict": "proven",
        "messages": 1234,
        "rows": {"a": 1000, "b": 0},
        "until": None,
        "checks": [{"kind": "ORDER", "checked": 1000}],
    }
    run = PipelineRun(pk=7, step=Step.VERIFY, state=RunState.DONE, result=result)
    assert run_in_words(run).splitlines() == [
        "verify 7: DONE",
        "  verdict: proven",
        "  messages: 1,234",
        "  rows: a 1,000, b 0",
        "  until: –",
        "  checks:",
        "    kind ORDER, checked 1,000",
    ]


def test_a_comparison_and_its_examples_are_printed_in_the_order_of_the_guide() -> None:
    # As PostgreSQL returns them: by the length of the names.
    example = {"key": "k17", "here": "DELIVERED", "result": "OTHER_ORDER", "overtook": "k18"}
    result = {"path": "/rows.csv", "same": 36, "examples": [example], "only_there": 1}
    run = PipelineRun(id=3, step=Step.COMPARE, state=RunState.DONE, result=result)
    assert run_in_words(run).splitlines() == [
        "compare 3: DONE",
        "  same: 36",
        "  only_there: 1",
        "  examples:",
        "    result OTHER_ORDER, key k17, here DELIVERED, overtook k18",
        "  path: /rows.csv",
    ]
