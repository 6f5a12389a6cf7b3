"""The schedule of a policy's retries in words, computed by the formula that sends them."""

from subscriptions.models import Policy, Schedule
from subscriptions.values.number_lists import seconds_listed
from subscriptions.values.schedules import offset_seconds

# Longer tables show only their beginning and end.
SHOWN = 6
_UNITS = ((86_400, "d", 72 * 3600), (3600, "h", 120 * 60), (60, "min", 120))


def retries(policy: Policy) -> int | None:
    """Return the number of retries after a failure; None: until it succeeds."""
    return None if policy.max_attempts is None else policy.max_attempts - 1


def describe_schedule(policy: Policy) -> str:
    """Return a sentence on the times of the retries."""
    count = retries(policy)
    if count == 0:
        return "With one attempt, nothing is tried again."
    if policy.retry_schedule == Schedule.FIXED:
        pause = duration_in_words(policy.retry_seconds)
        return f"Retries come {pause} after each failure, {_until(policy)}."
    shown = [
        duration_in_words(offset(policy, number))
        for number in range(1, min(count or SHOWN, SHOWN) + 1)
    ]
    if count is None:
        return (
            f"Retries come {', '.join(shown)} after the first failure, and so on until it succeeds."
        )
    if count > SHOWN:
        shown[-2:] = [f"… {duration_in_words(offset(policy, count))}"]
    return f"Retries come {', '.join(shown)} after the first failure, {count:,} in all."


def span(policy: Policy) -> str:
    """Return count and duration of the retries in short, such as `12 retries within 2 h`."""
    count = retries(policy)
    if count is None:
        return "until it succeeds"
    if count == 0:
        return "one attempt"
    noun = "retry" if count == 1 else "retries"
    return f"{count:,} {noun} within {duration_in_words(offset(policy, count))}"


def offset(policy: Policy, retry: int) -> float:
    """Return the seconds from the first failure to that retry."""
    is_exponential = policy.retry_schedule == Schedule.EXPONENTIAL
    waits = seconds_listed(policy.retry_waits) if policy.retry_schedule == Schedule.LISTED else ()
    return offset_seconds(
        retry, seconds=policy.retry_seconds, is_exponential=is_exponential, waits=waits
    )


def duration_in_words(seconds: float) -> str:
    """Return a duration in a suitable unit: `85 s`, `10 min`, `48 h`, `4 d`."""
    for size, unit, from_seconds in _UNITS:
        if seconds >= from_seconds:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.3g} s" if seconds < 10 else f"{seconds:.0f} s"


def _until(policy: Policy) -> str:
    count = retries(policy)
    if count is None:
        return "until it succeeds"
    if count == 1:
        return "once"
    last = duration_in_words(offset(policy, count))
    return f"{count:,} times: the last {last} after the first failure, if none is late"
