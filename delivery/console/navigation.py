"""The pages of the console: the groups of the sidebar, and each page's name, group and guide.

A page has a single name: in the sidebar, as heading, in the breadcrumbs and in the browser's tab.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib.admin.utils import quote
from django.db.models import Model
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from delivery.console.shared.rights import (
    Person,
    is_developer,
    may_configure,
    may_make_reports,
)


@dataclass(frozen=True, kw_only=True)
class Page:
    """A link of the sidebar.

    It leads to the list of `model`, which is `app.name`: users who may view it see the link. A page
    without a list has the `name` of the URL instead, and `may_see`. `guide` is the guide's page
    about it, with an anchor for a section.
    """

    title: str
    icon: str
    guide: str
    model: str = ""
    name: str = ""
    may_see: Callable[[Person], bool] | None = None

    @cached_property
    def url_name(self) -> str:
        # The admin names URLs app_model_view.
        return self.name or f"admin:{self.model.replace('.', '_')}_changelist"

    @property
    def address(self) -> str:
        return reverse(self.url_name)

    def is_for(self, user: Person) -> bool:
        if self.may_see is not None:
            return self.may_see(user)
        app, _, name = self.model.partition(".")
        return user.has_perm(f"{app}.view_{name}")


def list_page(title: str, icon: str, model: str, guide: str) -> Page:
    return Page(title=title, icon=icon, model=model, guide=guide)


def own_list_page(title: str, icon: str, model: str) -> Page:
    """Return the list of a developer, whom the lists of everything are closed to."""
    return Page(title=title, icon=icon, model=model, guide="roles#developers", may_see=is_developer)


def _everybody(_user: Person) -> bool:
    return True


OVERVIEW = Page(
    title="Overview",
    icon="dashboard",
    name="admin:index",
    guide="console#traffic-and-health",
    may_see=_everybody,
)
NOW = (
    OVERVIEW,
    list_page("Incidents", "notification_important", "delivery.incident", "incidents"),
    own_list_page("My messages", "mail", "delivery.ownmessage"),
    own_list_page("My deliveries", "local_shipping", "delivery.owndelivery"),
    list_page("Messages", "mail", "delivery.message", "console#find-messages"),
    list_page("Deliveries", "local_shipping", "delivery.delivery", "failures#resubmit-deliveries"),
    list_page("Lanes", "conversion_path", "delivery.lane", "policies#suspended-lanes"),
    list_page("URL health", "monitor_heart", "delivery.urlhealth", "policies#the-circuit-breaker"),
    list_page(
        "Resubmissions", "replay", "delivery.resubmission", "console#resubmit-or-cancel-many"
    ),
)
SET_UP = (
    list_page(
        "Event types",
        "category",
        "subscriptions.eventtype",
        "subscriptions#read-the-event-catalogue",
    ),
    list_page("Publishers", "campaign", "subscriptions.publisher", "words"),
    list_page("Subscribers", "group", "subscriptions.subscriber", "order#in-order-or-many-at-once"),
    list_page("Subscriptions", "rss_feed", "subscriptions.subscription", "subscriptions"),
    list_page("Policies", "rule", "subscriptions.policy", "policies"),
    list_page(
        "Common scripts", "code_blocks", "subscriptions.commonscript", "scripts#share-scripts"
    ),
    list_page(
        "Built-in receivers",
        "move_to_inbox",
        "delivery.builtinreceiver",
        "first-steps#built-in-receivers",
    ),
    Page(
        title="Configuration file",
        icon="description",
        name="configuration",
        guide="configuration",
        may_see=may_configure,
    ),
)
HISTORY = (
    list_page("Statistics", "insights", "delivery.historyhour", "history#in-the-console"),
    list_page("Archive", "inventory_2", "delivery.archivefile", "history#the-archive"),
    list_page("Replays", "replay_circle_filled", "delivery.replay", "history#replays"),
    list_page("Pipeline runs", "account_tree", "delivery.pipelinerun", "history#states-of-a-run"),
)
AUDIT = (
    Page(
        title="Reports",
        icon="lab_profile",
        name="admin:delivery_pipelinerun_report",
        guide="history#reports",
        may_see=may_make_reports,
    ),
    list_page("Findings", "fact_check", "delivery.finding", "history#verify"),
    list_page("Journal", "receipt_long", "delivery.journalentry", "roles#for-auditors"),
    list_page(
        "Configuration changes",
        "history",
        "subscriptions.configurationchange",
        "roles#for-auditors",
    ),
    list_page("Payload views", "visibility", "delivery.payloadview", "roles#payloads"),
    list_page("Sign-ins", "login", "subscriptions.signin", "roles#signing-in"),
)
SETTINGS = (
    list_page("Keys", "key", "subscriptions.apikey", "roles#keys"),
    list_page("Users", "person", "auth.user", "roles#grant-rights"),
    list_page("Roles", "badge", "auth.group", "roles#the-roles"),
    list_page("Incident rules", "add_alert", "delivery.incidentrule", "incidents#rules"),
    list_page("Retention", "auto_delete", "delivery.retentionrun", "retention"),
    list_page("Schedules", "schedule", "delivery.pipelineschedule", "history#run-it"),
)
GROUPS: tuple[tuple[str, tuple[Page, ...]], ...] = (
    ("Now", NOW),
    ("Set up", SET_UP),
    ("History", HISTORY),
    ("Audit", AUDIT),
    ("Settings", SETTINGS),
)

_PAGES = {page.url_name: (group, page) for group, pages in GROUPS for page in pages}
_MODELS = {page.model: (group, page) for group, pages in GROUPS for page in pages if page.model}


@dataclass(frozen=True, slots=True, kw_only=True)
class Crumb:
    title: str
    link: str = ""


def title_of_list(opts: Any) -> str:
    """Return the title of a model's list, as in the sidebar."""
    found = _MODELS.get(f"{opts.app_label}.{opts.model_name}")
    plural = str(opts.verbose_name_plural)
    return f"{plural[0].upper()}{plural[1:]}" if found is None else found[1].title


def guide_address(view_name: str) -> str | None:
    """Return the address of the guide's page about this page of the console; None without one."""
    found = _found(view_name)
    if found is None:
        return None
    name, _, anchor = found[1].guide.partition("#")
    return reverse("guide", args=[name]) + (f"#{anchor}" if anchor else "")


def breadcrumbs_of(*, view_name: str, original: Any, title: str) -> list[Crumb]:
    """Return the way to a page: the group, list and row, as far as they are above it."""
    found = _found(view_name)
    if found is None:
        return []
    group, page = found
    way = [Crumb(title=group)]
    if page.url_name != view_name:
        way.append(Crumb(title=page.title, link=page.address))
        # A title begins with a capital, which the name of a job does not.
        if isinstance(original, Model) and str(original).casefold() != title.casefold():
            way.append(Crumb(title=str(original), link=_address_of(original)))
    return way


def _found(view_name: str) -> tuple[str, Page] | None:
    """Return the page of a view, or of the list to which the view's row belongs."""
    model = ".".join(view_name.removeprefix("admin:").split("_")[:2])
    return _PAGES.get(view_name) or _MODELS.get(model)


def _address_of(row: Model) -> str:
    """Return the address of a row's first page: the status page, if any."""
    of = f"admin:{row._meta.app_label}_{row._meta.model_name}"
    try:
        return reverse(f"{of}_status", args=[row.pk])
    except NoReverseMatch:
        return reverse(f"{of}_change", args=[quote(row.pk)])


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the groups with the pages open to the user, and those open to everybody."""
    groups = [
        {"title": title, "separator": True, "items": _items(pages, request)}
        for title, pages in GROUPS
    ]
    guide = {"title": "Guide", "icon": "menu_book", "link": reverse("guide-index")}
    api = {"title": "API", "icon": "api", "link": reverse("docs")}
    shown = [group for group in groups if group["items"]]
    return [*shown, {"separator": True, "items": [guide, api]}]


def _items(pages: tuple[Page, ...], request: HttpRequest) -> list[dict[str, Any]]:
    match = request.resolver_match
    found = _found(match.view_name) if match else None
    return [
        {
            "title": page.title,
            "icon": page.icon,
            "link": page.address,
            "active": found is not None and found[1] is page,
        }
        for page in pages
        if page.is_for(request.user)
    ]
