"""The source as these tests read it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from config.env import CHECKOUT

PACKAGES = ("config", "subscriptions", "delivery")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(CHECKOUT).as_posix()

    @property
    def text(self) -> str:
        return self.path.read_text()

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def functions(self) -> list[Function]:
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]

    def place(self, node: ast.expr | ast.stmt) -> str:
        return f"{self.name}:{node.lineno}"


def production() -> list[Module]:
    """Return the product's modules, without migrations, which Django writes."""
    return [module for package in PACKAGES for module in _modules(CHECKOUT / package)]


def suite() -> list[Module]:
    return list(_modules(CHECKOUT / "tests"))


def _modules(folder: Path) -> Iterator[Module]:
    for path in sorted(folder.rglob("*.py")):
        if "migrations" not in path.parts:
            yield Module(path)
