"""The sidebar."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse


@dataclass(frozen=True, slots=True)
class Page:
    """A link of the sidebar; `model` is `app.name`, which decides who may see it."""

    title: str
    icon: str
    model: str


GROUPS: tuple[tuple[str, tuple[Page, ...]], ...] = (
    (
        "",
        (
            Page("Subscribers", "group", "subscriptions.subscriber"),
            Page("Subscriptions", "rss_feed", "subscriptions.subscription"),
        ),
    ),
    (
        "",
        (
            Page("Messages", "mail", "delivery.message"),
            Page("Deliveries", "local_shipping", "delivery.delivery"),
            Page("Resubmissions", "replay", "delivery.resubmission"),
            Page("Lanes", "conversion_path", "delivery.lane"),
            Page("URL health", "monitor_heart", "delivery.urlhealth"),
        ),
    ),
    (
        "History",
        (
            Page("History", "insights", "delivery.historyhour"),
            Page("Pipeline runs", "account_tree", "delivery.pipelinerun"),
            Page("Schedules", "schedule", "delivery.pipelineschedule"),
            Page("Findings", "fact_check", "delivery.finding"),
            Page("Replays", "replay_circle_filled", "delivery.replay"),
            Page("Archive", "inventory_2", "delivery.archivefile"),
        ),
    ),
    (
        "",
        (
            Page("Journal", "receipt_long", "delivery.journalentry"),
            Page("Retention", "auto_delete", "delivery.retentionrun"),
            Page("Event types", "category", "subscriptions.eventtype"),
            Page("Publishers", "campaign", "subscriptions.publisher"),
            Page("Keys", "key", "subscriptions.apikey"),
            Page("Policies", "rule", "subscriptions.policy"),
            Page("Configuration changes", "history", "subscriptions.configurationchange"),
            Page("Payload views", "visibility", "delivery.payloadview"),
        ),
    ),
    (
        "",
        (
            Page("Users", "person", "auth.user"),
            Page("Roles", "badge", "auth.group"),
            Page("Sign-ins", "login", "subscriptions.signin"),
        ),
    ),
)


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    overview = {"title": "Overview", "icon": "dashboard", "link": reverse("admin:index")}
    guide = {"title": "Guide", "icon": "menu_book", "link": reverse("guide-index")}
    return [
        {"items": [overview]},
        *(
            {"title": title, "separator": True, "items": [_item(page, request) for page in pages]}
            for title, pages in GROUPS
        ),
        {"separator": True, "items": [guide]},
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
