"""The pages of the guide in their order; the texts are in `templates/guide/*.md`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

HOW_TO: Final = "How to"
REFERENCE: Final = "Reference"
EXPLANATION: Final = "Explanation"


@dataclass(frozen=True, slots=True)
class GuidePage:
    """A page of the guide; the text is the template `guide/<name>.md`."""

    name: str
    title: str
    kind: str
    about: str


# `pages_by_kind` expects pages of a kind to be adjacent.
_PAGES = (
    GuidePage(
        "first-steps",
        "First steps",
        HOW_TO,
        "The first message in a minute, messages from the console, built-in receivers.",
    ),
    GuidePage(
        "subscriptions",
        "Set up a subscription",
        HOW_TO,
        "Create and test it, rotate its secret, move it; the requests that its receiver gets.",
    ),
    GuidePage(
        "console",
        "Find messages in the console",
        HOW_TO,
        "Search, resubmit or cancel many deliveries, read the charts.",
    ),
    GuidePage(
        "failures",
        "Find and repair failures",
        HOW_TO,
        "How failures are reported, and how to resubmit deliveries.",
    ),
    GuidePage(
        "incidents",
        "Be notified when something is wrong",
        HOW_TO,
        "Incidents: their causes and ends, mail, chat and messages, acknowledge and mute.",
    ),
    GuidePage(
        "holding",
        "Hold and release sending",
        HOW_TO,
        (
            "HELD and INACTIVE: of a subscription, a subscriber, or all of them; "
            "until when, and how fast afterwards."
        ),
    ),
    GuidePage(
        "operating",
        "Operate and grow",
        HOW_TO,
        "More machines, services, a PostgreSQL of your own, poolers, upgrades, commands.",
    ),
    GuidePage(
        "backup",
        "Back up and restore",
        HOW_TO,
        (
            "Make a back-up under load, restore it, decide what may have been sent since, "
            "move to another machine."
        ),
    ),
    GuidePage(
        "moving-in",
        "Come from another system",
        HOW_TO,
        "A page for each system, and the answers to the questions of the first day.",
    ),
    GuidePage(
        "taking-over",
        "Take over the old broker's messages",
        HOW_TO,
        "Its backlog in order; its delivered messages not again; the switch step by step.",
    ),
    GuidePage(
        "configuration",
        "Keep the configuration as a file",
        HOW_TO,
        "Export, plan and apply, secrets, drift, from test to production.",
    ),
    GuidePage(
        "teamforge",
        "Come from TeamForge",
        HOW_TO,
        "Terms, publish addresses and the Jenkins plugin, the first day and the way back.",
    ),
    GuidePage(
        "workfront",
        "Come from Workfront",
        HOW_TO,
        (
            "Its event subscriptions by its own calls or by import, base64, "
            "the first day and the way back."
        ),
    ),
    GuidePage(
        "webmethods",
        "Come from webMethods",
        HOW_TO,
        "Terms, the import of triggers, filters and retries, the first day and the way back.",
    ),
    GuidePage(
        "eventqueue",
        "Come from the Event Queue",
        HOW_TO,
        "Terms and calls, passwords of clients, the first day and the way back.",
    ),
    GuidePage(
        "compare",
        "Shadow and compare",
        HOW_TO,
        (
            "Run two brokers side by side: record matches without sending, "
            "and see the deliveries of only one of them."
        ),
    ),
    GuidePage("words", "Words", REFERENCE, "Each term and its meaning."),
    GuidePage("filters", "Filters", REFERENCE, "The language that chooses messages by their body."),
    GuidePage(
        "scripts",
        "Scripts",
        REFERENCE,
        "Change a message before it is sent, or answer a publisher.",
    ),
    GuidePage("policies", "Policies", REFERENCE, "The action for each outcome of an attempt."),
    GuidePage(
        "roles",
        "Roles and rights",
        REFERENCE,
        "Rights in the console, payloads, signing in, exports for auditors.",
    ),
    GuidePage(
        "settings", "Settings", REFERENCE, "Environment variables, proxies, health and metrics."
    ),
    GuidePage(
        "order",
        "Order, queues and duplicates",
        EXPLANATION,
        "In order or many at once, load-balanced groups, times to live, repetitions.",
    ),
    GuidePage(
        "callbacks",
        "Callbacks",
        EXPLANATION,
        "How the endpoint that took a QUEUE message answers it later.",
    ),
    GuidePage(
        "calls", "SYNC calls", EXPLANATION, "How a publisher gets an endpoint's answer at once."
    ),
    GuidePage(
        "mailboxes", "Mailboxes", EXPLANATION, "Fetching and acknowledging instead of being called."
    ),
    GuidePage(
        "retention",
        "Retention",
        EXPLANATION,
        "Retention periods of settled deliveries, and their removal.",
    ),
    GuidePage(
        "history",
        "The history",
        EXPLANATION,
        "The archive as Parquet, its checks, reports and replays.",
    ),
    GuidePage("speed", "Speed", EXPLANATION, "Measurements, and how to repeat them."),
    GuidePage(
        "machines",
        "How far it grows",
        EXPLANATION,
        "For 1,000 to 100,000 messages a second: machines, PostgreSQL, Spark.",
    ),
)
GUIDE_PAGES: Mapping[str, GuidePage] = {page.name: page for page in _PAGES}


def pages_by_kind() -> Sequence[tuple[str, Sequence[GuidePage]]]:
    return [(kind, list(pages)) for kind, pages in groupby(_PAGES, key=lambda page: page.kind)]
