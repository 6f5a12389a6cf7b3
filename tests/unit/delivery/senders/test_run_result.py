"""The limits of a run's reads: all of its places, at most half of them for skipped deliveries."""

import pytest

from delivery.senders.lanes.runs import Runs
from delivery.senders.run_result import PieceLimits, RunResult
from tests.unit.delivery.test_verdict import TEAMFORGE


def read(run: RunResult, rows: int, *, fresh: int, skipped: int) -> tuple[int, int]:
    """Read a piece of a lane that has so many, in the run's order; return what it takes of each."""
    limits = run.limits(rows)
    taken = min(fresh, limits.fresh_rows), min(skipped, limits.skipped_rows)
    if run.is_fresh_first:
        taken = taken[0], min(taken[1], limits.rows - taken[0])
    else:
        taken = min(taken[0], limits.rows - taken[1]), taken[1]
    run.add(limits, fresh=taken[0], skipped=taken[1], is_cut=False)
    return taken


def read_whole(run: RunResult, rows: int, *, fresh: int, skipped: int) -> list[tuple[int, int]]:
    """Read pieces while nothing of the run succeeds and it goes on."""
    pieces = [read(run, rows, fresh=fresh, skipped=skipped)]
    while run.goes_on:
        left = fresh - run.fresh, skipped - run.skipped
        pieces.append(read(run, rows, fresh=left[0], skipped=left[1]))
        assert len(pieces) < 100
    return pieces


@pytest.mark.parametrize("rows", [1, 3, 8, 100])
@pytest.mark.parametrize("is_fresh_first", [False, True])
@pytest.mark.parametrize(
    ("fresh", "skipped", "whole"),
    [
        (0, 0, (0, 0)),
        (5, 0, (5, 0)),
        (0, 5, (0, 5)),
        (0, 50, (0, 10)),
        (50, 0, (20, 0)),
        (50, 50, (10, 10)),
        (50, 3, (17, 3)),
        (3, 50, (3, 10)),
    ],
)
def test_a_run_has_all_places_however_it_is_divided(
    rows: int, is_fresh_first: bool, fresh: int, skipped: int, whole: tuple[int, int]
) -> None:
    run = RunResult(most=20, is_fresh_first=is_fresh_first)
    read_whole(run, rows, fresh=fresh, skipped=skipped)
    assert run.fresh + run.skipped == sum(whole)
    assert run.skipped <= 10
    if is_fresh_first:
        assert (run.fresh, run.skipped) == whole


@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_smallest_runs_take_both_kinds_in_turn(most: int) -> None:
    run = RunResult(most=most, is_fresh_first=True)
    read_whole(run, 100, fresh=9, skipped=9)
    assert (run.fresh, run.skipped) == (most - most // 2, most // 2)
    run = RunResult(most=most, is_fresh_first=True)
    read_whole(run, 100, fresh=0, skipped=9)
    assert (run.fresh, run.skipped) == (0, max(most // 2, 1))


def test_fresh_ones_come_first_in_a_run_of_several_pieces() -> None:
    run = RunResult(most=20, is_fresh_first=True)
    assert read_whole(run, 4, fresh=6, skipped=9) == [(4, 0), (2, 2), (0, 4), (0, 3)]


def test_a_run_with_a_success_does_not_go_on() -> None:
    run = RunResult(most=20)
    read(run, 4, fresh=9, skipped=0)
    assert run.goes_on
    run.count_settled(1, was_skipped=False)
    assert not run.goes_on


class TestNextRun:
    def to_read(self, runs: Runs, *, generation: int = 1, is_blocked: bool = False) -> RunResult:
        return runs.to_read(most=20, generation=generation, is_blocked=is_blocked)

    def failed(self, runs: Runs) -> RunResult:
        run = self.to_read(runs)
        read(run, 4, fresh=9, skipped=0)
        run.count_failed(7, subscription_id=1, reason="500", rules=TEAMFORGE)
        return run

    def test_a_run_without_success_goes_on_until_it_is_forgotten(self) -> None:
        runs = Runs()
        run = self.failed(runs)
        assert runs.is_answered(1)
        assert self.to_read(runs) is run
        following = self.to_read(runs, generation=2)
        assert following is not run
        assert following.is_fresh_first

    def test_after_an_attempt_that_blocked_the_lane_the_order_is_that_of_ids(self) -> None:
        runs = Runs()
        self.failed(runs)
        runs.block(1)
        assert not self.to_read(runs).is_fresh_first

    def test_in_the_pause_of_a_blocked_lane_only_early_attempts_are_read(self) -> None:
        runs = Runs()
        runs.pause(60)
        early = self.to_read(runs, is_blocked=True)
        assert early.is_early
        assert early.limits(16) == PieceLimits(rows=1, fresh_rows=1, skipped_rows=0)
        runs.flow()
        assert self.to_read(runs, is_blocked=True).limits(16).skipped_rows == 8
