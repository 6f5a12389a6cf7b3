"""The rights of each role on every page of the console; a page without a row is an error."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.contrib import admin
from django.urls import URLPattern, URLResolver, reverse

ADMINISTRATOR, SUPPORT, AUDITOR = "Administrators", "Support", "Auditors"
DEVELOPER = "Developers"
NOBODY: frozenset[str] = frozenset()
ADMINISTRATORS = frozenset({ADMINISTRATOR})
OWNERS = frozenset({ADMINISTRATOR, DEVELOPER})
RESCUERS = frozenset({ADMINISTRATOR, SUPPORT})
ALL = frozenset({ADMINISTRATOR, SUPPORT, AUDITOR})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The roles that may view an address, and those that may change anything through it.

    `is_action` marks an address that exists only for the change.
    """

    get: frozenset[str] = NOBODY
    post: frozenset[str] = NOBODY
    is_action: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """The rights on each model's standard pages."""

    add: frozenset[str] = NOBODY
    change: frozenset[str] = NOBODY
    delete: frozenset[str] = NOBODY
    get: frozenset[str] = ALL

    def rows(self) -> dict[str, Row]:
        return {
            "changelist": Row(get=self.get),
            "add": Row(get=self.add, post=self.add),
            "change": Row(get=self.get, post=self.change),
            "delete": Row(get=self.delete, post=self.delete),
            "history": Row(get=self.get),
        }


CONFIGURED = Rights(add=ADMINISTRATORS, change=ADMINISTRATORS, delete=ADMINISTRATORS)
GROWING = Rights()
MODELS = {
    "subscriptions_subscription": CONFIGURED,
    "subscriptions_subscriber": CONFIGURED,
    "subscriptions_eventtype": CONFIGURED,
    "subscriptions_publisher": CONFIGURED,
    "subscriptions_policy": CONFIGURED,
    "subscriptions_commonscript": CONFIGURED,
    # A key can only be created and revoked.
    "subscriptions_apikey": Rights(add=ADMINISTRATORS),
    "subscriptions_configurationchange": GROWING,
    "subscriptions_signin": GROWING,
    "delivery_builtinreceiver": CONFIGURED,
    "delivery_incident": GROWING,
    "delivery_incidentrule": Rights(change=ADMINISTRATORS),
    "delivery_message": GROWING,
    "delivery_ownmessage": Rights(get=OWNERS),
    "delivery_owndelivery": Rights(get=OWNERS),
    "delivery_delivery": GROWING,
    "delivery_lane": GROWING,
    "delivery_journalentry": GROWING,
    "delivery_payloadview": GROWING,
    "delivery_resubmission": Rights(add=RESCUERS),
    "delivery_retentionrun": GROWING,
    "delivery_urlhealth": GROWING,
    "delivery_historyhour": GROWING,
    "delivery_pipelinerun": GROWING,
    "delivery_pipelineschedule": Rights(change=ADMINISTRATORS),
    "delivery_finding": GROWING,
    "delivery_replay": Rights(add=ADMINISTRATORS),
    "delivery_archivefile": GROWING,
    "auth_user": CONFIGURED,
    "auth_group": CONFIGURED,
}

LOOK = Row(get=ALL)
RESCUE = Row(post=RESCUERS, is_action=True)
CONFIGURE = Row(post=ADMINISTRATORS, is_action=True)
PAGES = {
    "index": Row(get=ALL | {DEVELOPER}),
    "first_steps_create": CONFIGURE,
    # Sets a cookie.
    "first_steps_dismiss": Row(post=ALL, is_action=True),
    "app_list": LOOK,
    "search": LOOK,
    "sending": Row(get=ADMINISTRATORS),
    "sending_banner": LOOK,
    "sending_hold": CONFIGURE,
    "sending_release": CONFIGURE,
    "shown_once": LOOK,
    "auth_user_password_change": Row(get=ADMINISTRATORS, post=ADMINISTRATORS),
    "subscriptions_apikey_revoke": CONFIGURE,
    # Shows a form's values in words, and changes nothing.
    "subscriptions_policy_preview": Row(post=ADMINISTRATORS, is_action=True),
    "subscriptions_configurationchange_export": LOOK,
    "subscriptions_signin_export": LOOK,
    "subscriptions_signin_let_in": CONFIGURE,
    "subscriptions_publisher_make_address": CONFIGURE,
    "subscriptions_publisher_end_address": CONFIGURE,
    "subscriptions_subscription_activate": RESCUE,
    "subscriptions_subscription_deactivate": RESCUE,
    "subscriptions_subscription_hold": RESCUE,
    "subscriptions_subscription_shadow": RESCUE,
    "subscriptions_subscription_restore": RESCUE,
    "subscriptions_subscription_restore_chosen": RESCUE,
    "subscriptions_subscriber_activate": RESCUE,
    "subscriptions_subscriber_deactivate": RESCUE,
    "subscriptions_subscriber_hold": RESCUE,
    "subscriptions_subscriber_restore": RESCUE,
    "subscriptions_subscriber_restore_chosen": RESCUE,
    "subscriptions_subscription_rotate": CONFIGURE,
    "subscriptions_subscription_status": LOOK,
    "subscriptions_subscriber_status": LOOK,
    "subscriptions_subscription_end_secret": CONFIGURE,
    # Tests a filter, and changes nothing.
    "subscriptions_subscription_filter_test": Row(post=ALL, is_action=True),
    "subscriptions_subscription_script_test": Row(post=ADMINISTRATORS, is_action=True),
    "subscriptions_subscription_send_test": Row(
        get=ADMINISTRATORS, post=ADMINISTRATORS, is_action=True
    ),
    "subscriptions_subscription_rewrite": Row(
        get=ADMINISTRATORS, post=ADMINISTRATORS, is_action=True
    ),
    "subscriptions_eventtype_publish": Row(get=ADMINISTRATORS, post=ADMINISTRATORS, is_action=True),
    "delivery_builtinreceiver_status": LOOK,
    "delivery_builtinreceiver_switch": CONFIGURE,
    "delivery_incident_status": LOOK,
    "delivery_incident_acknowledge": RESCUE,
    "delivery_incident_assign": RESCUE,
    "delivery_incident_close": RESCUE,
    "delivery_incident_mute": RESCUE,
    "delivery_incident_resubmit": RESCUE,
    # Of a shared view of somebody else.
    "saved_view_rename": RESCUE,
    "saved_view_delete": RESCUE,
    "delivery_message_raw": LOOK,
    "delivery_message_trace_json": LOOK,
    "delivery_message_trace_text": LOOK,
    "delivery_delivery_resubmit": RESCUE,
    "delivery_delivery_cancel": RESCUE,
    "delivery_delivery_mark_delivered": RESCUE,
    "delivery_delivery_edit": Row(get=RESCUERS, post=RESCUERS, is_action=True),
    "delivery_lane_retry": RESCUE,
    "delivery_lane_skip": RESCUE,
    "delivery_lane_resume": RESCUE,
    "delivery_journalentry_export": LOOK,
    "delivery_payloadview_export": LOOK,
    "delivery_resubmission_cancel": RESCUE,
    "delivery_retentionrun_start": CONFIGURE,
    "delivery_urlhealth_release": RESCUE,
    "delivery_pipelinerun_request": CONFIGURE,
    "delivery_pipelinerun_stop": CONFIGURE,
    # Writes a file of rows that any role may read, and changes no delivery.
    "delivery_pipelinerun_report": Row(get=ALL, post=ALL, is_action=True),
    "delivery_pipelinerun_file": LOOK,
    "delivery_replay_start": CONFIGURE,
    "delivery_replay_cancel": CONFIGURE,
    "delivery_replay_again": CONFIGURE,
    "delivery_archivefile_lookup": LOOK,
    "delivery_archivefile_message": LOOK,
    "delivery_archivefile_raw": LOOK,
}
MATRIX = (
    {
        f"{model}_{page}": row
        for model, rights in MODELS.items()
        for page, row in rights.rows().items()
    }
    | PAGES
    # Actions on the selected rows of a list.
    | dict.fromkeys(
        [
            "delivery_delivery_changelist",
            "subscriptions_subscriber_changelist",
            "subscriptions_subscription_changelist",
        ],
        Row(get=ALL, post=RESCUERS),
    )
)
# Open pages: they show permitted objects only, or redirect to sign-in.
FOR_ALL = {
    "index",
    "search",
    "sending_banner",
    "shown_once",
    "app_list",
    "delivery_retentionrun_change",
    "delivery_historyhour_change",
    "delivery_archivefile_change",
    "delivery_finding_change",
}
# Open to every account, or without Inturn's rows: they have tests of their own.
OF_DJANGO = {
    "login",
    "logout",
    "password_change",
    "password_change_done",
    "jsi18n",
    "autocomplete",
    "view_on_site",
    "omnibox",
    "saved_view_save",
}


@cache
def addresses() -> tuple[URLPattern, ...]:
    """Return all named addresses of the console; those without a name only redirect to these."""
    return tuple(_named(admin.site.get_urls()))


def _named(patterns: list[URLPattern | URLResolver]) -> Iterator[URLPattern]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _named(pattern.url_patterns)
        elif pattern.name:
            yield pattern


def address_of(name: str, everything: dict[str, dict[str, Any]]) -> str:
    """Return the address of a page, about a row of `make_everything`."""
    pattern = next(pattern for pattern in addresses() if pattern.name == name)
    wanted = set(re.findall(r"<(?:\w+:)?(\w+)>", str(pattern.pattern)))
    given = everything.get(name) or everything.get("_".join(name.split("_")[:2]), {})
    given = {"form": "csv"} | given
    return reverse(
        f"admin:{name}", kwargs={key: given[key] for key in wanted or given.keys() & {"app_label"}}
    )
