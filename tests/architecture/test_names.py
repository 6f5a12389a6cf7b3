"""Names: one name means one thing, and is found by grep."""

import ast
from collections import defaultdict

from tests.architecture.source import production, suite

# Django finds these by their names.
DJANGO = {"Command", "Media", "Meta", "Migration"}


def test_each_class_name_exists_once() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for module in [*production(), *suite()]:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and node.name not in DJANGO:
                places[node.name].append(module.place(node))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
