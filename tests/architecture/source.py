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
        return list(_functions(self.tree))

    def place(self, node: ast.expr | ast.stmt) -> str:
        return f"{self.name}:{node.lineno}"


def production() -> list[Module]:
    """Return the product's modules, without migrations, which Django writes."""
    return [module for package in PACKAGES for module in _modules(CHECKOUT / package)]


def suite() -> list[Module]:
    return list(_modules(CHECKOUT / "tests"))


def _functions(block: ast.AST) -> Iterator[Function]:
    """Yield the functions in a block without a look at its expressions, which are most nodes."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(block, field, ()):
            if isinstance(node, Function):
                yield node
            yield from _functions(node)


def _modules(folder: Path) -> Iterator[Module]:
    for path in sorted(folder.rglob("*.py")):
        if "migrations" not in path.parts:
            yield Module(path)
