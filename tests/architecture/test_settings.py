"""Every setting is read in one place and described in the guide."""

import ast
import re

from config.env import CHECKOUT
from tests.architecture.source import Module, production

READER = "config/env.py"
SETTING = re.compile(r"[A-Z][A-Z_]+")


def settings() -> set[str]:
    """Return the names that the environment reader reads."""
    (reader,) = [module for module in production() if module.name == READER]
    calls = [node for node in ast.walk(reader.tree) if isinstance(node, ast.Call) and node.args]
    first = [call.args[0] for call in calls]
    constants = [argument.value for argument in first if isinstance(argument, ast.Constant)]
    return {value for value in constants if isinstance(value, str) and SETTING.fullmatch(value)}


def reads_environment(module: Module) -> bool:
    # Few modules have to be parsed.
    return re.search("environ|getenv", module.text) is not None and any(
        isinstance(node, ast.Attribute)
        and node.attr in {"environ", "getenv"}
        and ast.unparse(node.value) == "os"
        for node in ast.walk(module.tree)
    )


def reference() -> str:
    return (CHECKOUT / "templates" / "guide" / "settings.md").read_text()


def test_every_setting_is_in_the_guide() -> None:
    assert "INTURN_HOME" in settings()
    assert {name for name in settings() if f"`{name}`" not in reference()} == set()


def test_the_guide_names_no_setting_that_does_not_exist() -> None:
    rows = [line.split("|")[1] for line in reference().splitlines() if line.startswith("| `")]
    described = {name for row in rows for name in re.findall(r"`([A-Z][A-Z]+_[A-Z_]+)`", row)}
    assert described - settings() == set()


def test_only_the_environment_reader_reads_the_environment() -> None:
    apps = [
        module
        for module in production()
        if not module.name.startswith("config/")
        and module.name not in {*TELL_PYSPARK, *NAMES_SECRETS}
    ]
    assert [module.name for module in apps if reads_environment(module)] == []


# PySpark gets the workers' Python and the port of our JVM only through the environment.
TELL_PYSPARK = {"delivery/history/spark/jvm.py", "delivery/history/spark/session.py"}
# A document of configuration names variables of the person who applies it.
NAMES_SECRETS = {"delivery/configuration/document/secrets.py"}
