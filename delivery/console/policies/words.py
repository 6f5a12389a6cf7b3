"""A policy in plain words, for the choosing administrator."""

from django.forms import model_to_dict

from delivery.console.policies import schedule_words
from subscriptions.checks.policy import RETRYING, actions_in_effect
from subscriptions.models import Action, InDoubt, Policy, UsedUp
from subscriptions.values.number_lists import success_codes
from subscriptions.values.times import rounded_duration

_WORDS = {
    Action.BLOCK: "no later message is sent to this subscriber until it succeeds or the "
    "subscription is made INACTIVE",
    Action.SKIP: "it stays PENDING, the next message is sent, "
    "and it is tried again in the next run",
    Action.REJECT: "the delivery is REJECTED and never sent again",
    Action.UNSUPPORTED: "the delivery is 3xxNOTSUPPORTED and never sent again",
    Action.RETRY_LANE: "it leaves the lane, so that later messages flow, "
    "and the retry lane tries it again",
    Action.IN_PLACE: "it is tried again, and no later message is sent to this subscriber before it",
}
_IN_SHORT = {
    Action.BLOCK: "blocks",
    Action.SKIP: "skips and tries again",
    Action.REJECT: "rejects",
    Action.UNSUPPORTED: "is not supported",
    Action.RETRY_LANE: "goes to the retry lane",
    Action.IN_PLACE: "is retried in place",
}
_ANSWERS = {
    "on_unavailable": "503",
    "on_server_error": "any other 5xx",
    "on_rate_limited": "429",
    "on_client_error": "any other 4xx",
    "on_redirect": "3xx",
}
# Each pair of codes covers a whole class.
_WHOLE = (("503", "any other 5xx", "any 5xx"), ("429", "any other 4xx", "any 4xx"))
_GONE = (
    "An answer of 410 freezes the URL at once: "
    "nothing is sent to it until a person releases it, and nothing is lost."
)
_SUMMED_UP = {"on_unreachable": "unreachable", "on_server_error": "5xx", "on_client_error": "4xx"}


def policy_sentences(policy: Policy) -> list[str]:
    """Describe the policy in a sentence for each outcome.

    Answers with the same action share a line.
    """
    actions = actions_in_effect(model_to_dict(policy))
    in_effect = set(actions.values())
    return [
        _success(policy),
        "When the endpoint cannot be reached, TLS fails or it times out: "
        f"{_WORDS[Action(policy.on_unreachable)]}.",
        *(
            f"When it answers {_join_with_or(_wholes(codes))}: {_WORDS[Action(action)]}."
            for action, codes in _grouped(actions, _ANSWERS).items()
        ),
        *([] if in_effect.isdisjoint(RETRYING) else _retries(policy)),
        *_suspended_on_reject(policy),
        *(_pauses(policy) if in_effect & {Action.BLOCK, Action.SKIP} else []),
        *(_breaker(policy) if policy.breaks_circuit else []),
        _in_doubt(policy),
    ]


def policy_summary(policy: Policy) -> str:
    """Return a line with the distinguishing features of this policy."""
    actions = actions_in_effect(model_to_dict(policy))
    grouped = _grouped(actions, _SUMMED_UP)
    codes = _success_codes(policy)
    parts = [f"only {_join_with_or(codes)} is success"] if codes else []
    parts += [
        f"{_join_with_or(codes)} {_IN_SHORT[Action(action)]}{_how_long(policy, action)}"
        for action, codes in grouped.items()
    ]
    if policy.suspends_on_reject:
        parts.append("a rejection suspends")
    if policy.breaks_circuit:
        parts.append("a URL that keeps failing is disabled")
    if policy.freezes_when_gone:
        parts.append("410 freezes the URL")
    is_resent = policy.in_doubt == InDoubt.RESEND
    return ", ".join([*parts, f"in doubt {'is sent again' if is_resent else 'waits for a person'}"])


def _success(policy: Policy) -> str:
    codes = _success_codes(policy)
    if not codes:
        return "When the endpoint answers 2xx: the delivery is DELIVERED."
    return (
        f"When the endpoint answers {_join_with_or(codes)}: the delivery is DELIVERED. "
        "Any other 2xx counts as a 5xx."
    )


def _success_codes(policy: Policy) -> list[str]:
    """Return the only successful codes; empty if any 2xx does."""
    return [str(code) for code in sorted(success_codes(policy.success_codes) or [])]


def _grouped(actions: dict[str, str], names: dict[str, str]) -> dict[str, list[str]]:
    """Return action → names of the outcomes, in the order of `names`."""
    grouped: dict[str, list[str]] = {}
    for field, name in names.items():
        grouped.setdefault(actions[field], []).append(name)
    return grouped


def _wholes(codes: list[str]) -> list[str]:
    """Return the codes with complete pairs merged: 503 and any other 5xx are any 5xx."""
    for part, rest, whole in _WHOLE:
        if part in codes and rest in codes:
            codes = [whole if code == part else code for code in codes if code != rest]
    return codes


def _join_with_or(codes: list[str]) -> str:
    return codes[0] if len(codes) == 1 else f"{', '.join(codes[:-1])} or {codes[-1]}"


def _how_long(policy: Policy, action: str) -> str:
    if action not in RETRYING:
        return ""
    end = "" if policy.max_attempts is None else _end_in_short(policy)
    return f" ({schedule_words.span(policy)}{end})"


def _end_in_short(policy: Policy) -> str:
    return ", then suspends" if policy.when_used_up == UsedUp.SUSPEND else ", then FAILED"


def _retries(policy: Policy) -> list[str]:
    lines = [schedule_words.describe_schedule(policy)]
    if policy.retry_jitter:
        lines.append(
            f"Each of these waits varies by up to {policy.retry_jitter * 100:.3g} % by chance."
        )
    if policy.max_attempts is not None:
        lines.append(_used_up(policy))
    return lines


def _used_up(policy: Policy) -> str:
    attempts = (
        "attempt has" if policy.max_attempts == 1 else f"{policy.max_attempts:,} attempts have"
    )
    if policy.when_used_up == UsedUp.FAIL:
        return f"When the {attempts} failed, the delivery is FAILED and never sent again by itself."
    return (
        f"When the {attempts} failed, the lane is SUSPENDED with that delivery on top. The "
        f"subscription's probe URL is called every {rounded_duration(policy.probe_seconds)}, and "
        "at the first 2xx the lane resumes by itself; without a probe URL it waits for a person."
    )


def _suspended_on_reject(policy: Policy) -> list[str]:
    sentence = (
        "A REJECTED delivery also suspends the lane, until a person resumes it: "
        "nothing later overtakes it unseen."
    )
    return [sentence] if policy.suspends_on_reject else []


def _pauses(policy: Policy) -> list[str]:
    lines = [
        f"A blocked lane tries again after {policy.pause_seconds} s, "
        f"then after twice as long each time, up to {policy.pause_max_seconds} s."
    ]
    if Action.SKIP in actions_in_effect(model_to_dict(policy)).values():
        lines.append("So does a lane after a run in which nothing was delivered.")
    if policy.blocks_when_overloaded:
        lines.append(f"A Retry-After of up to {policy.retry_after_max_seconds} s is honoured.")
    return lines


def _breaker(policy: Policy) -> list[str]:
    return [
        f"A URL is DISABLED when more than {policy.breaker_percent} % of more than "
        f"{policy.breaker_attempts:,} attempts failed, or {policy.breaker_failures:,} in a row. "
        "Then due deliveries wait, and one attempt is made every "
        f"{rounded_duration(policy.breaker_probe_seconds)}, until one succeeds.",
        f"It is FROZEN after more than {policy.freeze_failures:,} failures in a row and "
        f"{policy.freeze_hours} h without a success, or after {policy.freeze_failures_at_once:,} "
        "in a row. Then nothing is tried until a person releases the URL. "
        "Waiting deliveries are never discarded.",
        *([_GONE] if policy.freezes_when_gone else []),
    ]


def _in_doubt(policy: Policy) -> str:
    resent = "it is sent again with the same webhook-id, marked as a redelivery"
    held = "it is held as IN_DOUBT until a person decides, and the lane goes on"
    return (
        "When a sender died after sending and the answer is unknown: "
        f"{resent if policy.in_doubt == InDoubt.RESEND else held}."
    )
