"""A role in plain words: the actions allowed by the rights, computed from the rights."""

from collections.abc import Iterable

from django.contrib.auth.models import Group, Permission

# Rights for other apps, such as sessions, have no effect in this console.
OUR_APPS = ("subscriptions", "delivery", "auth")
_DOES = {
    "delivery.change_delivery": "resubmits and cancels deliveries, and decides deliveries in doubt",
    "delivery.add_resubmission": "resubmits and cancels in bulk",
    "delivery.change_lane": "unblocks lanes: retry, skip, resume",
    "delivery.change_urlhealth": "releases stopped URLs",
    "delivery.change_incident": "acknowledges, assigns and mutes incidents",
    "delivery.add_message": "publishes messages in the console",
    "subscriptions.toggle_subscription": "makes subscriptions and subscribers ACTIVE, HELD and "
    "INACTIVE, and subscriptions SHADOW",
    "subscriptions.change_installation": "holds all sending",
    "delivery.add_retentionrun": "starts retention",
    "delivery.add_pipelinerun": "runs the history's pipeline",
    "delivery.add_replay": "replays archived messages",
}
_CONFIGURES = {
    "subscriptions.change_subscription": "subscriptions",
    "subscriptions.change_subscriber": "subscribers",
    "subscriptions.change_eventtype": "event types",
    "subscriptions.change_publisher": "publishers",
    "subscriptions.add_apikey": "keys",
    "subscriptions.change_policy": "policies",
    "subscriptions.change_commonscript": "common scripts",
    "delivery.change_builtinreceiver": "built-in receivers",
    "delivery.change_pipelineschedule": "schedules",
    "delivery.change_incidentrule": "incident rules",
    "auth.change_user": "users",
    "auth.change_group": "roles",
}
# Developers' rights, each contained in the right to view all messages.
OF_OWN = ("view_ownmessage", "view_owndelivery")
SEES_PAYLOADS = "delivery.view_payload"
MAKES_REPORTS = "delivery.make_report"


def names_of(permissions: Iterable[Permission]) -> set[str]:
    """Return names such as `delivery.change_lane`; prefetch the content types."""
    return {f"{each.content_type.app_label}.{each.codename}" for each in permissions}


def role_sentences(rights: set[str]) -> list[str]:
    """Return lines on the visible pages, the allowed actions and the allowed configuration."""
    configured = [word for right, word in _CONFIGURES.items() if right in rights]
    done = [words for right, words in _DOES.items() if right in rights]
    views = {
        right.partition(".")[2]
        for right in rights - {SEES_PAYLOADS}
        if right.partition(".")[2].startswith("view_")
    }
    lines = [_seeing(rights) if views - set(OF_OWN) else "Sees nothing."]
    if views & set(OF_OWN) and "view_message" not in views:
        payloads = "with" if SEES_PAYLOADS in rights else "without"
        lines = lines if views - set(OF_OWN) else []
        lines.append(
            f"Sees the messages and deliveries of their own publishers, {payloads} payloads."
        )
    lines += ["Creates reports of the history."] if MAKES_REPORTS in rights else []
    lines += [f"{words[0].upper()}{words[1:]}." for words in done]
    lines += [f"Configures {', '.join(configured)}."] if configured else []
    return lines if done or configured else [*lines, "Changes nothing."]


def bundles(known: Iterable[str]) -> dict[str, tuple[str, set[str]]]:
    """Return key → sentence and rights, for the form of a role.

    To see the pages is to view every kind of row; to configure a kind is to add, change and delete
    it as well.
    """
    views = {
        right
        for right in known
        if right.partition(".")[2].startswith("view_")
        and right != SEES_PAYLOADS
        and right.partition(".")[2] not in OF_OWN
    }
    own = {f"delivery.{codename}" for codename in OF_OWN}
    made = {
        "pages": ("Sees the pages of the console", views),
        "own": ("Sees the messages and deliveries of their own publishers", own),
        SEES_PAYLOADS: ("Sees payloads: bodies, header values, responses", {SEES_PAYLOADS}),
        MAKES_REPORTS: ("Creates reports of the history", {MAKES_REPORTS}),
    }
    for right, words in _DOES.items():
        made[right] = f"{words[0].upper()}{words[1:]}", {right}
    for right, words in _CONFIGURES.items():
        app, _, codename = right.partition(".")
        kind = codename.partition("_")[2]
        verbs = {f"{app}.{verb}_{kind}" for verb in ("add", "change", "delete")}
        made[right] = f"Configures {words}", verbs & set(known) | {right}
    return made


def role_summary(group: Group) -> str:
    """Return a line, for the form with the assignment of roles."""
    rights = names_of(group.permissions.all())
    if rights >= {*_DOES, *_CONFIGURES, SEES_PAYLOADS, MAKES_REPORTS}:
        return "everything"
    return " ".join(role_sentences(rights))


def _seeing(rights: set[str]) -> str:
    if SEES_PAYLOADS in rights:
        return "Sees the pages and payloads: bodies, header values, responses."
    return "Sees the pages, but no payloads: no bodies, header values or responses."
