"""The English of docstrings, comments, SQL and documents: pronouns per 1,000 words, as a whole.

A sentence that names its noun is read once; one that points at it is read twice. The limits leave
room for every sensible use. healthchecks and procrastinate have 0.9 and 1.7 "one", 0.9 and 1.5
"its", 3.0 and 7.7 "that" in 1,000 words.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator

import pytest

from config.env import CHECKOUT
from tests.architecture.source import production, suite
from tests.architecture.test_layout import listed

LIMITS = {"one": 5, "its": 5, "that": 8, "each": 8, "what": 1.5}
WORD = re.compile(r"[a-z']+")


def prose_of_python(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def prose() -> Iterator[str]:
    """Yield the prose of the product and the guide, without the code in documents."""
    for module in production():
        yield from prose_of_python(module.text)
    for path in listed():
        if path.endswith(".sql") and "/migrations/" not in path:
            yield from re.findall("--.*", (CHECKOUT / path).read_text())
        elif path.endswith(".md") and not path.startswith("tests/"):
            yield re.sub(r"(?m)^ {4}.*", "", (CHECKOUT / path).read_text())


@pytest.fixture(scope="module")
def words() -> Counter[str]:
    return Counter(word for text in prose() for word in WORD.findall(text.lower()))


@pytest.mark.parametrize("word", LIMITS)
def test_prose_names_its_nouns(word: str, words: Counter[str]) -> None:
    share = 1000 * words[word] / words.total()
    assert share <= LIMITS[word], f"{share:.1f} “{word}” in 1,000 words"


def bindings(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno


def test_no_variable_of_a_template_is_called_one() -> None:
    templates = sorted((CHECKOUT / "templates").rglob("*.html"))
    assert templates
    assert [path for path in templates if re.search(r"for one in|as one\b", path.read_text())] == []


def test_no_variable_is_called_one() -> None:
    assert [
        f"{module.name}:{line}"
        for module in [*production(), *suite()]
        if re.search(r"\bone\b", module.text)
        for name, line in bindings(module.tree)
        if name == "one"
    ] == []
