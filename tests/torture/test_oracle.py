"""The oracle itself: each rule finds its broken promise, and nothing in a history that keeps it."""

from tests.support.receivers import Received
from tests.torture import oracle, pauses
from tests.torture.records import FaultWindow, Fetched, Published, Woken, end_of_fault


def published(
    number: int, *, sent_at: float | None = None, answered_at: float | None = None
) -> Published:
    """Return message N, sent in second N and answered half a second later by default."""
    return Published(
        id=f"msg_{number}",
        event="E",
        key=str(number),
        sent_at=number if sent_at is None else sent_at,
        answered_at=number + 0.5 if answered_at is None else answered_at,
    )


def request(
    number: int,
    at: float,
    *,
    status: int | None = 200,
    attempt: int = 1,
    redelivery: str | None = None,
    port: int = 0,
) -> Received:
    headers = {
        "webhook-id": f"msg_{number}",
        "inturn-delivery": str(number),
        "inturn-attempt": str(attempt),
        **({"inturn-redelivery": redelivery} if redelivery else {}),
    }
    return Received(
        at=at,
        method="POST",
        path="/",
        headers=headers,
        body=b"%d" % number,
        tries=attempt,
        status=status,
        port=port,
    )


def fetched(
    at: float, *, released_at: float | None = None, acknowledged_at: float | None = None
) -> Fetched:
    return Fetched(
        id="msg_1",
        asked_at=at,
        answered_at=at + 0.1,
        visibility=5,
        released_at=released_at,
        acknowledged_at=acknowledged_at,
    )


def rules(findings: list[oracle.Breach]) -> list[str]:
    return [finding.rule for finding in findings]


TWO = [published(1), published(2)]


class TestLost:
    def test_a_message_without_a_delivery_is_lost(self) -> None:
        assert rules(oracle.lost("a", TWO, {"msg_1": "DELIVERED"}, [request(1, 3)])) == ["LOST"]

    def test_a_delivered_message_that_never_arrived_is_lost(self) -> None:
        both = {"msg_1": "DELIVERED", "msg_2": "DELIVERED"}
        assert rules(oracle.lost("a", TWO, both, [request(1, 3), request(2, 3, status=500)])) == [
            "LOST"
        ]

    def test_a_pending_message_is_stuck(self) -> None:
        assert rules(oracle.lost("a", TWO[:1], {"msg_1": "PENDING"}, [])) == ["STUCK"]

    def test_a_settled_and_received_message_is_not_lost(self) -> None:
        statuses = {"msg_1": "DELIVERED", "msg_2": "REJECTED"}
        assert oracle.lost("a", TWO, statuses, [request(1, 3)]) == []


class TestOrder:
    def test_a_later_message_must_not_arrive_first(self) -> None:
        assert rules(oracle.order("a", TWO, [request(2, 3), request(1, 4)])) == ["ORDER"]

    def test_messages_sent_at_the_same_time_have_no_order(self) -> None:
        both = [published(1), published(2, sent_at=1.2)]
        assert oracle.order("a", both, [request(2, 3), request(1, 4)]) == []

    def test_a_later_attempt_has_no_order(self) -> None:
        assert (
            oracle.order(
                "a", TWO, [request(1, 3, status=500), request(2, 4), request(1, 5, attempt=2)]
            )
            == []
        )


class TestRepeats:
    def test_an_accepted_message_must_not_return_unmarked(self) -> None:
        again = [request(1, 3), request(1, 4, attempt=2)]
        assert rules(oracle.repeats("a", again, holds=False)) == ["REPEATED"]

    def test_an_answer_that_no_client_received_does_not_count(self) -> None:
        again = [request(1, 3), request(1, 4, attempt=2)]
        for at, rules_found in ((3.001, []), (3.5, ["REPEATED"])):
            refused = FaultWindow(at, at + 1, None, "the receiver refuses connections")
            assert rules(oracle.repeats("a", again, holds=True, faults=[refused])) == rules_found

    def test_a_marked_message_may_return(self) -> None:
        again = [request(1, 3), request(1, 4, attempt=2, redelivery="in-doubt")]
        assert oracle.repeats("a", again, holds=False) == []

    def test_held_doubt_is_never_sent_again(self) -> None:
        again = [request(1, 3, status=None), request(1, 4, attempt=2, redelivery="in-doubt")]
        assert rules(oracle.repeats("a", again, holds=True)) == ["NOT HELD"]

    def test_a_failed_message_may_return(self) -> None:
        again = [request(1, 3, status=500), request(1, 4, attempt=2)]
        assert oracle.repeats("a", again, holds=True) == []


class TestDoubts:
    def test_each_crash_explains_one(self) -> None:
        crashes = [(11, 11), (30, 30)]
        assert oracle.doubts("a", [12, 31], crashes) == []
        assert rules(oracle.doubts("a", [12, 13], crashes)) == ["IN DOUBT"]
        assert oracle.doubts("a", [12, 13], crashes, at_most=2) == []

    def test_a_crash_explains_no_doubt_recorded_before_or_long_after_it(self) -> None:
        assert rules(oracle.doubts("a", [10], [(11, 11)])) == ["IN DOUBT"]
        assert rules(oracle.doubts("a", [60], [(11, 11)])) == ["IN DOUBT"]
        assert oracle.doubts("a", [10], [(11, 11)], wrong_by=5) == []

    def test_a_doubt_is_recorded_when_the_killed_machine_is_back(self) -> None:
        faults = [
            FaultWindow(10, 50, None, "kill -9 of the first machine"),
            FaultWindow(10, 90, "a", "lock"),
        ]
        assert [end_of_fault(crash, faults) for crash in (11, 51)] == [50, 51]
        assert oracle.doubts("a", [60], [(11, 50)]) == []
        assert rules(oracle.doubts("a", [66], [(11, 50)])) == ["IN DOUBT"]


def test_a_woken_sender_sends_only_when_connected() -> None:
    woken = [Woken(3, 5, frozenset({77}))]
    assert rules(oracle.sent_when_woken("a", [request(1, 4, port=77)], woken)) == [
        "SENT WHEN WOKEN"
    ]
    assert (
        oracle.sent_when_woken("a", [request(1, 4, port=78), request(2, 5, port=77)], woken) == []
    )


def test_publishers_are_answered_within_ten_seconds_of_a_fault() -> None:
    late = [published(1, answered_at=20)]
    assert rules(pauses.kept_waiting(late, [])) == ["KEPT WAITING"]
    assert pauses.kept_waiting(late, [FaultWindow(2, 15, None, "fault")]) == []
    assert rules(pauses.kept_waiting(late, [FaultWindow(2, 15, "a", "fault")])) == ["KEPT WAITING"]


class TestOvertaken:
    def test_no_message_overtakes_a_failed_one(self) -> None:
        received = [request(1, 3, status=500), request(2, 4), request(1, 5, attempt=2)]
        assert rules(oracle.overtaken("a", received, {})) == ["OVERTAKEN"]

    def test_a_rejected_message_or_one_in_doubt_is_left_behind(self) -> None:
        received = [request(1, 3, status=None), request(2, 4, status=400), request(3, 5)]
        assert oracle.overtaken("a", received, {"msg_1": "IN_DOUBT"}) == []


class TestStandingStill:
    def test_a_pause_while_something_waits_is_found(self) -> None:
        received = [request(1, 3), request(2, 20)]
        (finding,) = pauses.standing_still("a", TWO, received, [])
        assert (finding.rule, finding.at) == ("STOOD STILL", 3)

    def test_a_fault_explains_its_time_and_ten_seconds(self) -> None:
        received = [request(1, 3), request(2, 20)]
        assert pauses.standing_still("a", TWO, received, [FaultWindow(4, 11, None, "fault")]) == []
        assert (
            pauses.standing_still("a", TWO, received, [FaultWindow(4, 11, "another", "fault")])
            != []
        )

    def test_a_fault_that_ends_by_itself_explains_at_most_ten_seconds(self) -> None:
        stopped = [FaultWindow(4, 4, None, "SIGSTOP of sender 5")]
        assert pauses.standing_still("a", TWO, [request(1, 3), request(2, 13)], stopped) == []
        assert rules(pauses.standing_still("a", TWO, [request(1, 3), request(2, 15)], stopped)) == [
            "STOOD STILL"
        ]

    def test_a_mailbox_does_not_stand_still_either(self) -> None:
        assert rules(pauses.standing_still("m", TWO[:1], [fetched(20)], [])) == ["STOOD STILL"]

    def test_a_lane_without_work_may_rest(self) -> None:
        assert (
            pauses.standing_still(
                "a", [published(1), published(30)], [request(1, 3), request(30, 31)], []
            )
            == []
        )


class TestGroup:
    def test_one_endpoint_takes_each_message(self) -> None:
        statuses = {"msg_1": ["DELIVERED", "REDUNDANT"], "msg_2": ["DELIVERED", "DELIVERED"]}
        received = [request(1, 3), request(2, 3), request(2, 4)]
        found = oracle.group("q", TWO, statuses, received, most_in_doubt=1)
        assert rules(found) == ["GROUP", "GROUP"]

    def test_a_marked_repeat_may_be_taken_twice(self) -> None:
        statuses = {"msg_1": ["DELIVERED", "REDUNDANT"]}
        received = [request(1, 3), request(1, 4, attempt=2, redelivery="in-doubt")]
        assert oracle.group("q", TWO[:1], statuses, received, most_in_doubt=1) == []
        assert rules(oracle.group("q", TWO[:1], statuses, received, most_in_doubt=0)) == ["GROUP"]

    def test_an_answer_that_no_client_received_does_not_count(self) -> None:
        statuses, received = (
            {"msg_1": ["DELIVERED", "REDUNDANT"]},
            [request(1, 3), request(1, 4, attempt=2)],
        )
        for at, rules_found in ((3.001, []), (3.5, ["GROUP"])):
            refused = FaultWindow(at, at + 1, None, "the receiver refuses connections")
            found = oracle.group(
                "q", TWO[:1], statuses, received, most_in_doubt=1, faults=[refused]
            )
            assert rules(found) == rules_found


class TestMailbox:
    def test_two_clients_never_hold_the_same_message(self) -> None:
        assert rules(oracle.mailbox("m", TWO[:1], [fetched(2), fetched(4)])) == ["HELD"]

    def test_a_clock_change_may_end_a_visibility(self) -> None:
        assert oracle.mailbox("m", TWO[:1], [fetched(2), fetched(4)], steps=[3]) == []
        assert rules(oracle.mailbox("m", TWO[:1], [fetched(2), fetched(4)], steps=[1])) == ["HELD"]

    def test_released_and_timed_out_messages_return(self) -> None:
        assert oracle.mailbox("m", TWO[:1], [fetched(2, released_at=3), fetched(4)]) == []
        assert oracle.mailbox("m", TWO[:1], [fetched(2), fetched(8)]) == []

    def test_acknowledged_messages_do_not_return(self) -> None:
        assert rules(oracle.mailbox("m", TWO[:1], [fetched(2, acknowledged_at=3), fetched(8)])) == [
            "HELD"
        ]

    def test_every_message_is_fetched(self) -> None:
        assert rules(oracle.mailbox("m", TWO[:1], [])) == ["LOST"]


def test_one_key_stands_for_one_message() -> None:
    first, second = request(1, 3), request(2, 4)
    same = Received(
        at=4, method="POST", path="/", headers=second.headers, body=first.body, tries=1, status=200
    )
    assert oracle.published_twice("a", [first, second]) == []
    assert rules(oracle.published_twice("a", [first, same])) == ["PUBLISHED TWICE"]


def test_attempts_have_rising_numbers() -> None:
    assert oracle.numbered("a", [request(1, 3), request(1, 4, attempt=2)]) == []
    assert rules(oracle.numbered("a", [request(1, 3), request(1, 4)])) == ["NUMBERED TWICE"]
