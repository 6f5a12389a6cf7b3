"""The lanes under test: their subscriptions and the misbehaviour of their receivers."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.support.product import Flow, StartedSubscription
from tests.support.receivers import Answer, Behaviour, Close, Hold, Received, Receiver, Slow
from tests.support.rest import Json, ProductClient

# Longer than any fault: a stopped sender must not mistake an answer that came for a time-out.
PATIENT_SECONDS = 60
HANGING_SECONDS = 2
# A crash then usually meets a request in flight.
TAKEN = Slow(0.03)
MAX_IN_FLIGHT = 8
QUEUE_LANES = 5
PAUSE = {"pause_seconds": 1, "pause_max_seconds": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A lane's settings, and the percentage of messages with each misdeed of its receiver."""

    name: str
    policy: str
    misdeeds: Mapping[str, int]
    is_serial: bool = True
    holds_doubt: bool = False
    subscriber: Mapping[str, object] = field(default_factory=dict)
    timeout_seconds: int = PATIENT_SECONDS


@dataclass(frozen=True, slots=True)
class ObservedLane:
    role: Role
    subscribed: StartedSubscription

    @property
    def name(self) -> str:
        return self.role.name

    @property
    def received(self) -> list[Received]:
        return self.subscribed.endpoint.received


ROLES: Sequence[Role] = (
    Role(name="well-1", policy="torture-teamforge", misdeeds={}),
    Role(name="well-2", policy="torture-teamforge", misdeeds={}),
    Role(name="teamforge-1", policy="torture-teamforge", misdeeds={"500": 2, "close": 1, "400": 1}),
    Role(name="teamforge-2", policy="torture-teamforge", misdeeds={"500": 1, "503": 1}),
    Role(
        name="hanging",
        policy="torture-teamforge",
        misdeeds={"hang": 1},
        timeout_seconds=HANGING_SECONDS,
    ),
    Role(name="strict-1", policy="torture-strict", misdeeds={"500": 1, "400": 1}, holds_doubt=True),
    Role(name="strict-2", policy="torture-strict", misdeeds={"close": 1}, holds_doubt=True),
    Role(name="retries", policy="torture-retries", misdeeds={"500": 3}, is_serial=False),
    Role(
        name="concurrent",
        policy="torture-teamforge",
        misdeeds={"500": 2, "400": 1},
        is_serial=False,
        subscriber={"processing": "CONCURRENT", "max_in_flight": MAX_IN_FLIGHT},
    ),
)
QUEUE_ROLES: Sequence[Role] = tuple(
    Role(name=f"worker-{number}", policy="torture-teamforge", misdeeds={"500": 2}, is_serial=False)
    for number in (1, 2, 3)
)

_MISDEEDS: Mapping[str, Callable[[], Behaviour]] = {
    "500": lambda: Answer(500),
    "503": lambda: Answer(503),
    "400": lambda: Answer(400),
    "close": Close,
    "hang": Hold,
}


def configure_policies(rest: ProductClient) -> None:
    """Create copies of the built-in policies whose pauses fit into a run of a minute."""
    copies: Sequence[Json] = (
        {"name": "torture-teamforge", "copy_of": "teamforge", **PAUSE},
        {"name": "torture-strict", "copy_of": "strict", **PAUSE},
        {"name": "torture-retries", "copy_of": "workfront-2017", "retry_seconds": 1},
    )
    for copy in copies:
        rest.post("policies", copy)


def subscribe(
    flow: Flow, receiver: Receiver, roles: Sequence[Role], *, seed: int
) -> list[ObservedLane]:
    return [_subscribe(flow, receiver, role, seed=seed) for role in roles]


def _subscribe(flow: Flow, receiver: Receiver, role: Role, *, seed: int) -> ObservedLane:
    endpoint = receiver.endpoint(role.name)
    endpoint.follow(lambda received: behaviour(role, received, seed=seed))
    subscribed = flow.subscribe(
        endpoint,
        subscriber=flow.subscriber(role.name, **role.subscriber),
        policy=role.policy,
        timeout_seconds=role.timeout_seconds,
    )
    return ObservedLane(role, subscribed)


def behaviour(role: Role, received: Received, *, seed: int) -> Behaviour:
    """Return the behaviour, decided by seed, lane and message.

    A misdeed other than 400 is over at the third try at the latest.
    """
    chance = zlib.crc32(b"%d %s %s" % (seed, role.name.encode(), received.body)) % 1000
    for name, percent in role.misdeeds.items():
        if chance < 10 * percent:
            lasting = name == "400" or received.tries <= 1 + chance % 2
            return _MISDEEDS[name]() if lasting else TAKEN
        chance -= 10 * percent
    return TAKEN
