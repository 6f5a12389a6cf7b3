"""A policy in plain words: what an administrator must know to choose it."""

from subscriptions.models import Action, InDoubt, Policy

_WORDS = {
    Action.BLOCK: "nothing later is sent to this subscriber until it succeeds or the subscription is made INACTIVE",
    Action.SKIP: "it stays PENDING, the next message is sent, and it is tried again in the next run",
    Action.REJECT: "the delivery is REJECTED and never sent again",
    Action.UNSUPPORTED: "the delivery is 3xxNOTSUPPORTED and never sent again",
}


def sentences(policy: Policy) -> list[str]:
    """Describe the policy, one sentence an outcome; answers that lead to the same share one."""
    answers = {
        "503": Action.BLOCK if policy.blocks_when_overloaded else policy.on_unavailable,
        "any other 5xx": policy.on_server_error,
        "429": Action.BLOCK if policy.blocks_when_overloaded else policy.on_rate_limited,
        "any other 4xx": policy.on_client_error,
        "3xx": policy.on_redirect,
    }
    grouped: dict[str, list[str]] = {}
    for answer, action in answers.items():
        grouped.setdefault(action, []).append(answer)
    return [
        f"When the endpoint cannot be reached, TLS fails or it times out: {_WORDS[Action(policy.on_unreachable)]}.",
        *(
            f"When it answers {_either(codes)}: {_WORDS[Action(action)]}."
            for action, codes in grouped.items()
        ),
        *_pauses(policy),
        _in_doubt(policy),
    ]


def summary(policy: Policy) -> str:
    """Say in one line what makes this policy different from others."""
    ordered = "blocks" if policy.on_server_error == Action.BLOCK else "skips and tries again"
    return (
        f"unreachable {policy.on_unreachable.lower()}s, 5xx {ordered}, "
        f"4xx {policy.on_client_error.lower()}s, in doubt {policy.in_doubt.lower()}s"
    )


def _either(codes: list[str]) -> str:
    return codes[0] if len(codes) == 1 else f"{', '.join(codes[:-1])} or {codes[-1]}"


def _pauses(policy: Policy) -> list[str]:
    said = [
        f"A blocked lane tries again after {policy.pause_seconds} s, "
        f"then after twice as long each time, up to {policy.pause_max_seconds} s."
    ]
    if policy.blocks_when_overloaded:
        said.append(f"A Retry-After of up to {policy.retry_after_max_seconds} s is honoured.")
    return said


def _in_doubt(policy: Policy) -> str:
    resent = "it is sent again with the same webhook-id, marked as a redelivery"
    held = "it is held as IN_DOUBT until a person decides, and the lane goes on"
    return (
        "When a sender died after sending and nobody knows the answer: "
        f"{resent if policy.in_doubt == InDoubt.RESEND else held}."
    )
