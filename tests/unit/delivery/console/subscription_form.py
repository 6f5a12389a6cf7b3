"""The form of a subscription: the values that a browser sends, and the errors of an answer."""

from typing import Any

from tests.support import factories


def form_values(**changed: Any) -> dict[str, Any]:
    """Return values for a new subscription that the form accepts, but for those in `changed`."""
    values: dict[str, Any] = {
        "name": "artifacts",
        "policy": "teamforge",
        "mode": "PUSH",
        "endpoint": "https://127.0.0.1/hook",
        "timeout_seconds": "30",
        "position": "0",
        "auth_type": "none",
        "dedup_mode": "NONE",
        "dedup_window_seconds": "259200",
        "join_mode": "NONE",
        "join_seconds": "86400",
    } | changed
    values["policy"] = factories.policy(values["policy"]).pk
    event_type = values.get("event_type") or factories.event_type("Made")
    subscriber = values.get("subscriber") or factories.subscriber("crm")
    return values | {"subscriber": subscriber.pk, "event_type": event_type.pk}


def errors(answer: Any) -> dict[str, list[str]]:
    return dict(answer.context["adminform"].form.errors)
