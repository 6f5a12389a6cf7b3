"""The properties of a webMethods trigger: order, threads, queue, retries, exactly-once, suspension.

By the names of `pub.trigger:createTrigger` and of the trigger report. Values may be texts, as
webMethods has them. Times are milliseconds there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from delivery.management.importing.import_result import Imported, SourceError

# Properties of a trigger without a meaning of their own.
CAPACITY, REFILL, RETRY_MS = 10, 4, 10_000
MOST_QUEUED, MOST_IN_FLIGHT, MOST_ATTEMPTS = 10_000, 1000, 100_000
LONGEST_WAIT_SECONDS, LONGEST_WINDOW_SECONDS = 86_400.0, 31 * 86_400
# The names by which Integration Server keeps triggers in files, node.ndf.
_NODE_NAMES: Mapping[str, tuple[str, ...]] = {
    "isConcurrent": ("concurrent",),
    "queueCapacity": ("docsPrefetchMax",),
    "maxRetryAttempts": ("redeliveryOptions.max",),
}
# As the built-in policy of this name, but for attempts and waits.
_POLICY = {
    **dict.fromkeys(
        ("on_unreachable", "on_unavailable", "on_server_error", "on_rate_limited"), "IN_PLACE"
    ),
    **dict.fromkeys(("on_client_error", "on_redirect"), "REJECT"),
    "in_doubt": "HOLD",
    "retry_schedule": "FIXED",
}


@dataclass(slots=True)
class Properties:
    """`given` has the properties by name; those within an object as `redeliveryOptions.max`."""

    label: str
    given: Mapping[str, Any]
    states: Mapping[str, str]
    differently: list[str] = field(default_factory=list)
    impossible: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, imported: Imported, trigger: Mapping[str, Any], *, label: str) -> "Properties":
        given = trigger.get("properties") or {}
        if not isinstance(given, dict):
            raise SourceError(f"{label}: properties is no object.")
        states = {}
        for name in ("retrievalStatus", "processingStatus"):
            status = trigger.get(name)
            states[name] = (
                str(imported.source_object(status, noun=f"key of {name}").get("state", ""))
                if isinstance(status, dict)
                else ""
            )
        return cls(label, imported.source_object(dict(_flat(given)), noun="property"), states)

    def number(self, name: str, default: int) -> int:
        found = self._value(name)
        if found in (None, ""):
            return default
        try:
            return int(str(found))
        except ValueError:
            raise SourceError(
                f"{self.label}: {name} is no whole number: {str(found)[:50]}."
            ) from None

    def is_true(self, name: str, *, default: bool = False) -> bool:
        found = self._value(name)
        return (
            default if found in (None, "") else str(found).strip().lower() in ("true", "1", "yes")
        )

    def text(self, name: str) -> str:
        return str(self._value(name) or "").strip()

    def _value(self, name: str) -> Any:
        """Return the value under the documented name or node.ndf's."""
        values = [self.given.get(node) for node in (name, *_NODE_NAMES.get(name, ()))]
        return next((value for value in values if value not in (None, "")), None)

    @property
    def dedup(self) -> dict[str, Any]:
        """Exactly-once processing: the document's uuid is the Idempotency-Key here."""
        resolver = self.text("resolverServiceName")
        seconds = self.number("dupHistoryTTL", 0) // 1000
        has_history = self.is_true("dupHistory", default=True)
        if not self.is_true("dupDetection"):
            return {}
        if not has_history:
            self.note(self.differently, "duplicates are found by a history, which it did not use")
        if resolver:
            self.note(
                self.impossible,
                f"its document resolver {resolver}; IN_DOUBT deliveries wait for a person",
            )
        window = min(max(seconds, 1), LONGEST_WINDOW_SECONDS) if seconds else LONGEST_WINDOW_SECONDS
        self.note(
            self.differently,
            (
                f"duplicates are found by Idempotency-Key for {window:,} s; "
                "publish with the document's uuid as key"
            ),
        )
        return {"dedup_mode": "KEY", "dedup_window_seconds": window}

    def note(self, where: list[str], text: str) -> None:
        line = f"{self.label}: {text}"
        if line not in where:
            where.append(line)


def _flat(given: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the properties with those of inner objects, by dotted names."""
    for name, value in given.items():
        if isinstance(value, dict) and not prefix:
            yield from _flat(value, f"{name}.")
        else:
            yield prefix + name, value


def subscriber_of(properties: Properties, *, name: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "match_mode": "FIRST", "processing": "SERIAL"}
    threads = max(properties.number("maxExecutionThreads", 1), 1)
    if properties.is_true("isConcurrent"):
        entry |= {"processing": "CONCURRENT", "max_in_flight": min(threads, MOST_IN_FLIGHT)}
    capacity = min(max(properties.number("queueCapacity", CAPACITY), 1), MOST_QUEUED)
    refill = properties.number("queueRefillLevel", REFILL)
    if not 0 <= refill < capacity:
        refill = capacity - 1
        properties.note(
            properties.differently, f"refill_level is {refill}: less than max_queued_to_send"
        )
    entry |= {"max_queued_to_send": capacity, "refill_level": refill, "status": _status(properties)}
    if properties.is_true("priorityEnabled"):
        _add_priority(properties, entry)
    return entry


def _add_priority(properties: Properties, entry: dict[str, Any]) -> None:
    if entry["processing"] != "CONCURRENT":
        properties.note(
            properties.impossible,
            "priorities with serial processing; messages are sent in the order of publication. "
            "A CONCURRENT subscriber may have by_priority",
        )
        return
    entry["by_priority"] = True
    properties.note(
        properties.differently,
        (
            "priorities: publish with the envelope's priority, 0 to 9, as the header Priority. "
            "Of four deliveries one is the oldest"
        ),
    )


def _status(properties: Properties) -> str:
    """A disabled trigger gets nothing; the documents of a suspended trigger wait."""
    if not properties.is_true("executeEnabled", default=True):
        return "INACTIVE"
    is_suspended = any(state.startswith("suspended") for state in properties.states.values())
    return "HELD" if is_suspended else "ACTIVE"


def policy_of(properties: Properties) -> str | dict[str, Any]:
    """Return the name of a built-in policy, or a new one, for equal settings."""
    retries = properties.number("maxRetryAttempts", 0)
    seconds = min(
        max(properties.number("retryInterval", RETRY_MS) / 1000, 0.1), LONGEST_WAIT_SECONDS
    )
    attempts = None if retries < 0 else min(retries + 1, MOST_ATTEMPTS)
    suspends = properties.text("redeliveryAction") not in ("", "0")
    on_reject = properties.is_true("serialSuspendOnError") and not properties.is_true(
        "isConcurrent"
    )
    service = properties.text("monitorServiceName")
    if suspends and service:
        properties.note(
            properties.impossible,
            (
                f"its monitoring service {service}; give its subscriptions a probe_url that "
                "answers 2xx when the resource is available, or resume the lane by hand"
            ),
        )
    suspends = suspends and attempts is not None
    if (attempts, seconds, suspends, on_reject) == (5, 10.0, False, False):
        return "webmethods"
    parts = [
        "webmethods",
        f"{attempts}-attempts" if attempts else "until-success",
        f"{seconds:g}s",
        *(["suspend"] if suspends else []),
        *(["suspend-on-error"] if on_reject else []),
    ]
    return {
        "name": "-".join(parts),
        **_POLICY,
        "retry_seconds": seconds,
        "max_attempts": attempts,
        "when_used_up": "SUSPEND" if suspends else "FAIL",
        "suspends_on_reject": on_reject,
    }
