"""Windows: their limits, and the combinations that the engine cannot serve."""

from dataclasses import replace
from typing import Any

import pytest

from delivery.models import LaneKind
from delivery.senders.lanes.window import (
    CONCURRENT,
    LEAST_BY_PRIORITY,
    QUEUE,
    SERIAL,
    WaitsBy,
    Window,
    window_of,
)
from tests.unit.delivery.senders.lanes.test_lane import ROW


def test_a_lane_by_priority_holds_few_deliveries_in_memory() -> None:
    def capacity(**fields: Any) -> int | None:
        return window_of(LaneKind.TOPIC, ROW | {"by_priority": True} | fields).capacity

    assert capacity() == LEAST_BY_PRIORITY
    assert capacity(max_in_flight=100) == 400
    assert capacity(max_in_flight=1000) == 500
    assert capacity(max_queued_to_send=1) == 4
    assert window_of(
        LaneKind.TOPIC, ROW | {"by_priority": True, "processing": "SERIAL"}
    ).records_ahead


@pytest.mark.parametrize(
    ("window", "fields"),
    [
        (SERIAL, {"max_in_flight": 2}),
        (SERIAL, {"waits_by": WaitsBy.ENDPOINT}),
        (CONCURRENT, {"records_ahead": True}),
        (CONCURRENT, {"may_stay_first": True}),
        (CONCURRENT, {"may_stay_first": True, "max_in_flight_per_key": 1}),
        (QUEUE, {"may_stay_first": True}),
    ],
)
def test_a_window_that_cannot_be_served_is_refused(window: Window, fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"run recorded ahead|stays first"):
        replace(window, **fields)


def test_a_lane_is_served_by_the_limits_of_its_subscriber() -> None:
    serial = window_of(LaneKind.TOPIC, ROW | {"processing": "SERIAL", "max_queued_to_send": 7})
    assert serial == replace(SERIAL, capacity=7, refill_level=100)
    several = window_of(LaneKind.TOPIC, ROW)
    assert several == replace(CONCURRENT, max_in_flight=4, capacity=500, refill_level=100)
    assert window_of(LaneKind.QUEUE, ROW) == QUEUE
