"""The sidebar of the console."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from delivery.console.shared.rights import may_configure


@dataclass(frozen=True, slots=True)
class Page:
    """A link of the sidebar.

    `model` is `app.name`: users who may view it see the link. `guide` is the page of the guide that
    explains it, with an anchor if a section does.
    """

    title: str
    icon: str
    model: str
    guide: str


GROUPS: tuple[tuple[str, tuple[Page, ...]], ...] = (
    (
        "",
        (
            Page(
                "Subscribers", "group", "subscriptions.subscriber", "order#in-order-or-many-at-once"
            ),
            Page("Subscriptions", "rss_feed", "subscriptions.subscription", "subscriptions"),
            Page(
                "Built-in receivers",
                "move_to_inbox",
                "delivery.builtinreceiver",
                "first-steps#built-in-receivers",
            ),
        ),
    ),
    (
        "",
        (
            Page("Messages", "mail", "delivery.message", "console#find-messages"),
            Page(
                "Deliveries", "local_shipping", "delivery.delivery", "failures#resubmit-deliveries"
            ),
            Page(
                "Resubmissions",
                "replay",
                "delivery.resubmission",
                "console#resubmit-or-cancel-many",
            ),
            Page("Lanes", "conversion_path", "delivery.lane", "policies#suspended-lanes"),
            Page(
                "URL health", "monitor_heart", "delivery.urlhealth", "policies#the-circuit-breaker"
            ),
        ),
    ),
    (
        "History",
        (
            Page("History", "insights", "delivery.historyhour", "history#in-the-console"),
            Page(
                "Pipeline runs", "account_tree", "delivery.pipelinerun", "history#states-of-a-run"
            ),
            Page("Schedules", "schedule", "delivery.pipelineschedule", "history#run-it"),
            Page("Findings", "fact_check", "delivery.finding", "history#verify"),
            Page("Replays", "replay_circle_filled", "delivery.replay", "history#replays"),
            Page("Archive", "inventory_2", "delivery.archivefile", "history#the-archive"),
        ),
    ),
    (
        "",
        (
            Page("Journal", "receipt_long", "delivery.journalentry", "roles#for-auditors"),
            Page("Retention", "auto_delete", "delivery.retentionrun", "retention"),
            Page(
                "Event types",
                "category",
                "subscriptions.eventtype",
                "subscriptions#read-the-event-catalogue",
            ),
            Page("Publishers", "campaign", "subscriptions.publisher", "words"),
            Page("Keys", "key", "subscriptions.apikey", "roles#keys"),
            Page("Policies", "rule", "subscriptions.policy", "policies"),
            Page(
                "Common scripts",
                "code_blocks",
                "subscriptions.commonscript",
                "scripts#share-scripts",
            ),
            Page(
                "Configuration changes",
                "history",
                "subscriptions.configurationchange",
                "roles#for-auditors",
            ),
            Page("Payload views", "visibility", "delivery.payloadview", "roles#payloads"),
        ),
    ),
    (
        "",
        (
            Page("Users", "person", "auth.user", "roles#grant-rights"),
            Page("Roles", "badge", "auth.group", "roles#the-three-roles"),
            Page("Sign-ins", "login", "subscriptions.signin", "roles#signing-in"),
        ),
    ),
)

_OTHER_GUIDES = {"index": "console#traffic-and-health", "configuration": "configuration"}
# The admin names its URLs app_model_view.
_GUIDES = {page.model.replace(".", "_"): page.guide for _, pages in GROUPS for page in pages}


def guide_address(url_name: str) -> str | None:
    """Return the address of the guide's page about this page of the console; None without one."""
    model = "_".join(url_name.split("_")[:2])
    guide = _OTHER_GUIDES.get(url_name) or _GUIDES.get(model)
    if guide is None:
        return None
    name, _, anchor = guide.partition("#")
    return reverse("guide", args=[name]) + (f"#{anchor}" if anchor else "")


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    overview = {"title": "Overview", "icon": "dashboard", "link": reverse("admin:index")}
    guide = {"title": "Guide", "icon": "menu_book", "link": reverse("guide-index")}
    file = {
        "title": "Configuration file",
        "icon": "description",
        "link": reverse("configuration"),
        "permission": lambda request: may_configure(request.user),
    }
    return [
        {"items": [overview]},
        *(
            {"title": title, "separator": True, "items": [_item(page, request) for page in pages]}
            for title, pages in GROUPS
        ),
        {"separator": True, "items": [file, guide]},
    ]


def _item(page: Page, request: HttpRequest) -> dict[str, Any]:
    app, name = page.model.split(".")
    may_see = request.user.has_perm(f"{app}.view_{name}")
    return {
        "title": page.title,
        "icon": page.icon,
        "link": reverse(f"admin:{app}_{name}_changelist"),
        "permission": lambda _request: may_see,
    }
