"""A new field of subscriptions needs its model, a migration, its place on the form and the guide.

A copy of the tree gets such a field. Form, REST, OpenAPI and document then know the field: see
`new_field.py`.
"""

import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PRODUCT = ("config", "delivery", "subscriptions", "templates", "static")
COPIED = (*PRODUCT, "tests", "manage.py", "pyproject.toml", "README.md")
FIELD = """\
    colour = models.CharField(
        "colour of the label",
        max_length=20,
        blank=True,
        default="",
        db_default="",
        validators=[validate_name],
        help_text="A name such as green.",
    )
"""
# File → the text that gets the addition, and the addition.
PATCHES = {
    "subscriptions/models/subscription.py": ("    created_at = ", FIELD),
    "delivery/console/subscriptions/admin.py": ('"description", "subscriber"', '"colour", '),
    "templates/guide/subscriptions.md": ("## Default destination", "`colour` is a name.\n\n"),
}
MIGRATION = "subscriptions/migrations/*_colour.py"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy with the field."""
    unread = shutil.ignore_patterns("__pycache__", ".*")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=unread)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    for name, (beside, added) in PATCHES.items():
        file = tmp_path / name
        text = file.read_text()
        assert text.count(beside) == 1
        file.write_text(text.replace(beside, f"{added}{beside}"))
    run(tmp_path, "django", "makemigrations", "subscriptions", "--name", "colour")
    return tmp_path


def run(tree: Path, *arguments: str, without: tuple[str, ...] = ()) -> str:
    """Run a module in the copy, without variables that begin so, and return the output."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=tree,
        env={name: os.environ[name] for name in os.environ if not name.startswith(without)},
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    return output


def changed_files(tree: Path) -> set[str]:
    """Return the product files that the copy has otherwise, or more."""
    files = (
        file.relative_to(tree)
        for name in PRODUCT
        for file in (tree / name).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    )
    return {
        str(file)
        for file in files
        if not (ROOT / file).exists() or not filecmp.cmp(ROOT / file, tree / file, shallow=False)
    }


def test_form_rest_and_document_know_a_new_field_of_the_model(tree: Path) -> None:
    (migration,) = tree.glob(MIGRATION)
    assert changed_files(tree) == {*PATCHES, str(migration.relative_to(tree))}
    # With a server of its own.
    ours = ("PYTEST", "DATABASE_URL", "INTURN_", "DJANGO_")
    output = run(tree, "pytest", "-q", "tests/architecture/new_field.py", without=ours)
    assert "4 passed" in output
