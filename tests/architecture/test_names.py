"""Names: each has one meaning, and a search for it finds one place."""

import re
from collections import defaultdict

from tests.architecture.source import Function, production, suite

# Django finds these by their names.
DJANGO = {"Command", "Media", "Meta", "Migration"}
# A caller writes `pause(…)` or `module.pause(…)`, and the reader does not know the thing that
# pauses. A verb of this domain with one meaning, such as `publish` or `judge`, needs no noun.
BARE_VERB = re.compile(
    """
    acknowledge|activate|add|advance|answer|apply|ask|begin|call|cancel|change|check|close|compact
    |compose|connect|count|create|deactivate|delete|disconnect|do|drop|end|ensure|enter|exchange
    |execute|explain|export|extend|fail|fetch|find|fire|forget|forgive|get|handle|hold|install|load
    |look|make|move|nudge|observe|open|parse|pause|plan|process|put|read|record|recover|refuse
    |register|reject|release|remove|reopen|report|resolve|respond|restore|resubmit|resume|retry
    |rewrite|rotate|run|save|say|select|send|serve|set|settle|shorten|skip|split|start|stop|store
    |subscribe|succeed|suspend|take|tell|tidy|transform|translate|understand|unsubscribe|update|use
    |verify|wait|walk|write
    """,
    re.VERBOSE,
)
# A preposition without a noun: seven functions `in_words` and five `of_subscriptions` stood here.
BARE_PREPOSITION = re.compile("(?:about|as|at|by|in|of|on|within)_.+")


# To parse all files would take fifty times as long.
CLASSES = re.compile(r"^ *class (\w+)[(:\[]", re.MULTILINE)
# The upper halves of the numbers of advisory locks.
LOCKS = re.compile(r"^\w+ = (0x494E[0-9A-F]{4})", re.MULTILINE)


def test_each_kind_of_advisory_lock_has_a_number_of_its_own() -> None:
    numbers = [number for module in production() for number in LOCKS.findall(module.text)]
    assert len(numbers) > 5
    assert len(set(numbers)) == len(numbers)


def test_each_class_name_exists_once() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for module in [*production(), *suite()]:
        text = module.text
        for found in CLASSES.finditer(text):
            if found[1] not in DJANGO:
                line = text.count("\n", 0, found.start(1)) + 1
                places[found[1]].append(f"{module.name}:{line}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_each_public_function_names_its_object() -> None:
    bare = [
        f"{module.place(node)} {node.name}"
        for module in production()
        for node in module.tree.body
        if isinstance(node, Function)
        and (BARE_VERB.fullmatch(node.name) or BARE_PREPOSITION.fullmatch(node.name))
    ]
    assert bare == []
