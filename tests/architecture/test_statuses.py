"""Only the lifecycle and the statements of the table of edges write a delivery's status."""

import ast
import re

from config.env import CHECKOUT
from delivery.database.statements import names, statement
from tests.architecture.source import Module, production

LIFECYCLE = "delivery/lifecycle/transitions.py"
# It writes a subscription's status.
TOGGLES = {
    "delivery/support/toggle.py",
}

WRITERS = {"create", "update", "bulk_create", "bulk_update", "get_or_create", "update_or_create"}
WRITING_SQL = re.compile(
    r"(?is)\b(update|insert\s+into)\s+\"?delivery_(delivery|waiting|settled)\b"
)


def is_anothers_status(target: ast.expr) -> bool:
    """True for the status of another object: a value may set its own; models set theirs nowhere."""
    match target:
        case ast.Attribute(attr="status", value=ast.Name(id="self")):
            return False
        case ast.Attribute(attr="status"):
            return True
    return False


def writes_status(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=attribute), keywords=keywords) if (
            attribute in WRITERS
        ):
            return any(keyword.arg == "status" for keyword in keywords)
        case ast.Call(func=ast.Name(id="Delivery"), keywords=keywords):
            return any(keyword.arg == "status" for keyword in keywords)
        case ast.Assign(targets=targets):
            return any(is_anothers_status(target) for target in targets)
        case ast.Constant(value=str(text)):
            return bool(WRITING_SQL.search(text))
    return False


def writing(module: Module) -> list[str]:
    # Half of the modules need not be parsed.
    if not re.search("status|delivery_", module.text, re.IGNORECASE):
        return []
    return [
        module.place(node)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.expr | ast.stmt) and writes_status(node)
    ]


def test_only_the_lifecycle_writes_a_deliverys_status() -> None:
    others = [module for module in production() if module.name not in {LIFECYCLE, *TOGGLES}]
    assert [place for module in others for place in writing(module)] == []


def test_the_lifecycle_does_write_it() -> None:
    (lifecycle,) = [module for module in production() if module.name == LIFECYCLE]
    assert writing(lifecycle)


# Three tables by name, one of them the parent of the others: see `delivery/README.md`.
DELIVERIES = r"\"?delivery_(?:delivery|waiting|settled)\b"
MOVES = re.compile(rf"(?i)\b(?:insert\s+into|delete\s+from)\s+{DELIVERIES}")
SETS = re.compile(rf"(?is)\bupdate\s+{DELIVERIES}.*?\bset\b(.*?)\b(?:from|where)\b")
EDGES = re.compile(r"(?s)\n\| edge \| statement \|\n(.*?)\n\n")


def changes_status(text: str) -> bool:
    """True if a statement makes, moves or removes a delivery, or sets a status or a lane."""
    assigned = "".join(SETS.findall(text))
    return bool(MOVES.search(text) or re.search(r"\b(status|lane_id)\s*=", assigned))


def test_the_table_of_edges_has_the_statements_that_change_a_status() -> None:
    edges = EDGES.search((CHECKOUT / "delivery/README.md").read_text())
    assert edges is not None
    described = set(re.findall(r"`([a-z_]+)\.sql`", edges[1]))
    assert described == {name for name in names() if changes_status(statement(name))}
