"""Where the endpoints of a plan lead: the servers of all that are new or changed, looked up before anything is locked."""

from collections.abc import Collection, Iterator

from subscriptions.configuration.document import SUBSCRIPTIONS, Fault
from subscriptions.configuration.plan import Plan, PlannedObject, Verb
from subscriptions.rewriting import Server, refused_servers
from subscriptions.values.addresses import Network
from subscriptions.values.endpoints import INTERNAL, parse_endpoint

_FIELDS = ("endpoint", "probe_url")


def find_refused(plan: Plan, *, allowed_networks: Collection[Network]) -> None:
    """Add a fault for each server with an address that is not allowed: it may be that of thousands of subscriptions."""
    users: dict[Server, list[tuple[str, str]]] = {}
    for one in plan.changes:
        for label, field, server in _urls(one):
            users.setdefault(server, []).append((label, field))
    for server, detail in refused_servers(sorted(users), allowed_networks).items():
        (label, field), *others = users[server]
        also = (
            f" So {'is 1 other URL' if len(others) == 1 else f'are {len(others):,} others'} of this server."
        )
        plan.faults.append(Fault(object=label, field=field, detail=detail + (also if others else "")))


def _urls(one: PlannedObject) -> Iterator[tuple[str, str, Server]]:
    if one.section is not SUBSCRIPTIONS or one.verb == Verb.DELETE:
        return
    for field in one.fields:
        if field.name in _FIELDS and field.after and field.after != INTERNAL:
            parsed = parse_endpoint(field.after)
            yield one.label, field.name, (parsed.host, parsed.port)
