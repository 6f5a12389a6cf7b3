"""The payloads of notifications, written and read."""

from hypothesis import given
from hypothesis import strategies as st

from delivery.database.connections import CHANNEL, MAILBOX_CHANNEL
from delivery.lifecycle.notifier import notifications
from delivery.senders.notifications import GAP, Notification, notification_of

ids = st.frozensets(st.integers(1, 2**40), max_size=2_000)


@given(ids, ids, st.booleans())
def test_a_notification_survives_encoding_and_decoding(
    lanes: frozenset[int], nudged: frozenset[int], is_change: bool
) -> None:
    words = {f"work {id}" for id in lanes} | {f"nudge {id}" for id in nudged}
    reported = notifications(words | ({"changed"} if is_change else set()))
    call = notification_of([payload for channel, payload in reported if channel == CHANNEL])
    assert (call.lanes, call.nudged, call.is_change) == (lanes, nudged, is_change)


@given(ids, ids)
def test_news_of_mailboxes_does_not_reach_senders(
    mailboxes: frozenset[int], lanes: frozenset[int]
) -> None:
    reported = notifications({f"mailbox {id}" for id in mailboxes} | {f"work {id}" for id in lanes})
    ids = [payload.split(",") for channel, payload in reported if channel == MAILBOX_CHANNEL]
    assert frozenset(int(id) for some in ids for id in some) == mailboxes
    assert (
        notification_of([payload for channel, payload in reported if channel == CHANNEL]).lanes
        == lanes
    )


@given(ids)
def test_a_payload_is_shorter_than_postgresql_allows(lanes: frozenset[int]) -> None:
    words = {f"work {id}" for id in lanes} | {f"mailbox {id}" for id in lanes}
    assert all(len(payload) < 8000 for _, payload in notifications(words))


def test_after_a_gap_every_lane_is_to_look() -> None:
    assert notification_of([GAP, "work 1"]) == Notification(lanes=frozenset({1}), is_gap=True)
