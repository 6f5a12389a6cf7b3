"""Every cell of the policies `teamforge` and `strict`: the effect of each outcome of an attempt.

All cells run in parallel, each with a subscriber and a receiver of its own: two messages are
published in one transaction, and the first of them is answered badly.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import OK, Answer, Behaviour, Hold, Receiver
from tests.support.rest import Json

RETRY_AFTER_SECONDS = 3


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A port without a listener."""

    status: None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCell:
    """One outcome under one policy, and the attempts that should follow."""

    policy: str
    outcome: str
    answer: Behaviour | Unreachable
    leads_to: str

    @property
    def name(self) -> str:
        return f"{self.policy}-{self.outcome}"


ANSWERS: Mapping[str, Behaviour | Unreachable] = {
    "unreachable": Unreachable(),
    "timeout": Hold(),
    "503": Answer(503, headers={"Retry-After": str(RETRY_AFTER_SECONDS)}),
    "429": Answer(429, headers={"Retry-After": str(RETRY_AFTER_SECONDS)}),
    "500": Answer(500),
    "404": Answer(404),
    "301": Answer(301, headers={"Location": "/elsewhere"}),
}
TABLE: Mapping[str, Mapping[str, str]] = {
    "teamforge": {
        "unreachable": "block",
        "timeout": "block",
        "503": "skip",
        "429": "REJECTED",
        "500": "skip",
        "404": "REJECTED",
        "301": "3xxNOTSUPPORTED",
    },
    "strict": {
        "unreachable": "block",
        "timeout": "block",
        "503": "block",
        "429": "block",
        "500": "block",
        "404": "REJECTED",
        "301": "3xxNOTSUPPORTED",
    },
    # teamforge with its switch: 503 and 429 block, and Retry-After is honoured.
    "switched": {"503": "block", "429": "block", "500": "skip", "404": "REJECTED"},
}
CELLS = [
    PolicyCell(policy=policy, outcome=outcome, answer=ANSWERS[outcome], leads_to=leads_to)
    for policy, outcomes in TABLE.items()
    for outcome, leads_to in outcomes.items()
]


@dataclass(slots=True)
class PolicyTrial:
    """A running cell: the requests at its endpoint, and its lane's state while blocked."""

    of: StartedSubscription
    receiver: Receiver
    messages: list[str] = field(default_factory=list)
    blocked: Json = field(default_factory=dict)

    @property
    def tries(self) -> list[int]:
        """Return the index of each request's message."""
        return [self.messages.index(request.id) for request in self.of.endpoint.received]


class PolicyTable:
    """The run of all cells."""

    def __init__(self, flow: Flow, receivers: ExitStack) -> None:
        self.flow = flow
        self.trials = {cell.name: self._prepare(cell, receivers) for cell in CELLS}

    def run(self) -> None:
        messages = self.flow.publish_numbered(2)
        for trial in self.trials.values():
            trial.messages = messages
        for cell in CELLS:
            self._observe(cell, self.trials[cell.name])
        for trial in self.trials.values():
            self.flow.wait_until_settled(trial.of)

    def _prepare(self, cell: PolicyCell, receivers: ExitStack) -> PolicyTrial:
        receiver = receivers.enter_context(Receiver())
        endpoint = receiver.endpoint(cell.name)
        if isinstance(cell.answer, Unreachable):
            receiver.refuse_connections()
        elif cell.leads_to == "block":
            endpoint.always(cell.answer)
        else:
            endpoint.next(cell.answer)
        return PolicyTrial(
            self.flow.subscribe(endpoint, policy=cell.policy, timeout_seconds=1), receiver
        )

    def _observe(self, cell: PolicyCell, trial: PolicyTrial) -> None:
        """Wait for the block, if there should be one; then let the endpoint recover."""
        if cell.leads_to == "block":
            trial.blocked = self.flow.wait_until_blocked(trial.of)
        trial.of.endpoint.always(OK)
        trial.receiver.accept_connections()


@pytest.fixture(scope="module")
def table(product: Product) -> Iterator[PolicyTable]:
    flow = product.flow("Policies")
    product.rest.post("policies", {"name": "switched", "blocks_when_overloaded": True})
    with ExitStack() as receivers:
        table = PolicyTable(flow, receivers)
        table.run()
        yield table


def cells(*leads_to: str) -> pytest.MarkDecorator:
    chosen = [cell for cell in CELLS if cell.leads_to in leads_to]
    return pytest.mark.parametrize("cell", chosen, ids=lambda cell: cell.name)


@cells("block")
def test_a_blocked_lane_sends_nothing_later_until_its_head_succeeds(
    table: PolicyTable, cell: PolicyCell
) -> None:
    trial = table.trials[cell.name]
    assert trial.tries[-2:] == [0, 1]
    assert set(trial.tries[:-1]) == {0}
    assert table.flow.statuses(trial.of) == ["DELIVERED", "DELIVERED"]


@cells("block")
def test_a_blocked_lane_shows_cause_time_head_and_next_try(
    table: PolicyTable, cell: PolicyCell
) -> None:
    trial = table.trials[cell.name]
    lane = trial.blocked
    assert lane["delivery"] == table.flow.delivery(trial.of, trial.messages[0])["id"]
    assert lane["waiting"] == 2
    assert lane["reason"]
    assert lane["since"] < lane["next_try_at"]
    assert table.flow.lane(trial.of)["state"] != "BLOCKED"


@cells("skip")
def test_skip_sends_the_next_and_this_one_again_later(table: PolicyTable, cell: PolicyCell) -> None:
    trial = table.trials[cell.name]
    assert trial.tries == [0, 1, 0]
    assert table.flow.statuses(trial.of) == ["DELIVERED", "DELIVERED"]


@cells("REJECTED", "3xxNOTSUPPORTED")
def test_reject_never_sends_it_again(table: PolicyTable, cell: PolicyCell) -> None:
    trial = table.trials[cell.name]
    assert trial.tries == [0, 1]
    assert table.flow.statuses(trial.of) == [cell.leads_to, "DELIVERED"]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_every_attempt_is_in_the_history(table: PolicyTable, cell: PolicyCell) -> None:
    trial = table.trials[cell.name]
    attempts = table.flow.delivery(trial.of, trial.messages[0])["attempts"]
    assert [attempt["number"] for attempt in attempts] == list(range(1, len(attempts) + 1))
    expected = None if cell.outcome in ("unreachable", "timeout") else int(cell.outcome)
    assert attempts[0]["status_code"] == expected
    if cell.leads_to in ("block", "skip"):
        assert attempts[-1]["outcome"] == "SUCCESS"


def test_a_redirect_is_not_followed(table: PolicyTable) -> None:
    for policy in ("teamforge", "strict"):
        trial = table.trials[f"{policy}-301"]
        assert not trial.receiver.endpoint("elsewhere").received


@pytest.mark.parametrize("outcome", ["503", "429"])
def test_the_switch_honours_retry_after(table: PolicyTable, outcome: str) -> None:
    first, second = table.trials[f"switched-{outcome}"].of.endpoint.received[:2]
    assert second.at - first.at >= RETRY_AFTER_SECONDS - 0.1


@cells("block")
def test_a_blocked_lane_tries_again_after_about_a_second(
    table: PolicyTable, cell: PolicyCell
) -> None:
    trial = table.trials[cell.name]
    first, second = table.flow.delivery(trial.of, trial.messages[0])["attempts"][:2]
    began = datetime.fromisoformat(first["started_at"]) + timedelta(
        milliseconds=first["duration_ms"]
    )
    # One second, less a tenth and the rounding of clock and duration.
    assert datetime.fromisoformat(second["started_at"]) - began >= timedelta(seconds=0.88)
