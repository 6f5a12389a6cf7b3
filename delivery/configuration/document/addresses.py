"""The addresses of a plan's endpoints: new and changed addresses are resolved before any lock."""

from collections.abc import Collection, Container, Iterator

from delivery.configuration.document.document import SUBSCRIPTIONS, DocumentFault
from delivery.configuration.document.plan import Plan, PlannedObject, Verb
from subscriptions.checks.addresses import URL_FIELDS
from subscriptions.rewriting import Server, refused_servers
from subscriptions.values.addresses import Network
from subscriptions.values.endpoints import INTERNAL, parse_endpoint


def find_refused(
    plan: Plan, *, allowed_networks: Collection[Network], built_in_receivers: Container[str]
) -> None:
    """Add a fault for each server with a forbidden address.

    It may serve thousands of subscriptions. Built-in receivers are accepted.
    """
    users: dict[Server, list[tuple[str, str]]] = {}
    for change in plan.changes:
        for label, field, server in _urls(change, built_in_receivers):
            users.setdefault(server, []).append((label, field))
    for server, detail in refused_servers(sorted(users), allowed_networks).items():
        (label, field), *others = users[server]
        count = "is 1 other URL" if len(others) == 1 else f"are {len(others):,} others"
        also = f" So {count} of this server."
        plan.faults.append(
            DocumentFault(object=label, field=field, detail=detail + (also if others else ""))
        )


def _urls(
    change: PlannedObject, built_in_receivers: Container[str]
) -> Iterator[tuple[str, str, Server]]:
    if change.section is not SUBSCRIPTIONS or change.verb == Verb.DELETE:
        return
    for field in change.fields:
        if field.name in URL_FIELDS and field.after and field.after != INTERNAL:
            parsed = parse_endpoint(field.after)
            if parsed.url not in built_in_receivers:
                yield change.label, field.name, (parsed.host, parsed.port)
