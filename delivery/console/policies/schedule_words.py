"""The schedule of a policy's retries in words, computed by the formula for sending."""

from subscriptions.models import Policy, Schedule
from subscriptions.values.number_lists import seconds_listed
from subscriptions.values.schedules import offset_seconds
from subscriptions.values.times import rounded_duration

# Longer tables show only their beginning and end.
SHOWN = 6


def retries(policy: Policy) -> int | None:
    """Return the number of retries after a failure; None: until it succeeds."""
    return None if policy.max_attempts is None else policy.max_attempts - 1


def describe_schedule(policy: Policy) -> str:
    """Return a sentence on the times of the retries."""
    count = retries(policy)
    if count == 0:
        return "With one attempt, nothing is tried again."
    if policy.retry_schedule == Schedule.FIXED:
        pause = rounded_duration(policy.retry_seconds)
        return f"Retries come {pause} after each failure, {_until(policy)}."
    shown = [
        rounded_duration(offset(policy, number))
        for number in range(1, min(count or SHOWN, SHOWN) + 1)
    ]
    if count is None:
        return (
            f"Retries come {', '.join(shown)} after the first failure, and so on until it succeeds."
        )
    if count > SHOWN:
        shown[-2:] = [f"… {rounded_duration(offset(policy, count))}"]
    return f"Retries come {', '.join(shown)} after the first failure, {count:,} in all."


def span(policy: Policy) -> str:
    """Return count and duration of the retries in short, such as `12 retries within 2 h`."""
    count = retries(policy)
    if count is None:
        return "until it succeeds"
    if count == 0:
        return "one attempt"
    noun = "retry" if count == 1 else "retries"
    return f"{count:,} {noun} within {rounded_duration(offset(policy, count))}"


def offset(policy: Policy, retry: int) -> float:
    """Return the seconds from the first failure to this retry."""
    is_exponential = policy.retry_schedule == Schedule.EXPONENTIAL
    waits = seconds_listed(policy.retry_waits) if policy.retry_schedule == Schedule.LISTED else ()
    return offset_seconds(
        retry, seconds=policy.retry_seconds, is_exponential=is_exponential, waits=waits
    )


def _until(policy: Policy) -> str:
    count = retries(policy)
    if count is None:
        return "until it succeeds"
    if count == 1:
        return "once"
    last = rounded_duration(offset(policy, count))
    return f"{count:,} times: the last {last} after the first failure, if none is late"
