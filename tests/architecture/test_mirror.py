"""`tests/unit` mirrors the packages: each file of tests is named after a module.

`test_<module>.py` or `test_<module>_<aspect>.py` lies in the folder of the module's package.
Instead of a module, the name may be that of a statement of the package, or of the package itself.
"""

from pathlib import Path

import pytest

from config.env import CHECKOUT

UNIT = CHECKOUT / "tests" / "unit"


def names_in(package: Path) -> set[str]:
    modules = {path.stem for path in package.iterdir() if path.suffix in {".py", ".json"}}
    folders = {path.name for path in package.iterdir() if path.is_dir()}
    statements = {path.stem for path in package.glob("sql/*.sql")}
    return modules | folders | statements | {package.name}


def is_named_after(stem: str, names: set[str]) -> bool:
    words = stem.removeprefix("test_").split("_")
    return any("_".join(words[:count]) in names for count in range(len(words), 0, -1))


def test_each_file_of_unit_tests_is_named_after_a_module() -> None:
    strangers = []
    for path in sorted(UNIT.rglob("test_*.py")):
        folder = path.parent.relative_to(UNIT).as_posix()
        package = CHECKOUT / folder
        if not package.is_dir() or not is_named_after(path.stem, names_in(package)):
            strangers.append(path.relative_to(UNIT).as_posix())
    assert strangers == []


@pytest.mark.parametrize(
    ("stem", "is_named"),
    [
        ("test_lane", True),
        ("test_lane_of_two", True),
        ("test_lanes", False),
        ("test_moving", False),
    ],
)
def test_a_name_begins_with_that_of_the_module(stem: str, is_named: bool) -> None:
    assert is_named_after(stem, {"lane", "stock"}) is is_named
