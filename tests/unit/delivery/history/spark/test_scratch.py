"""The folder for the files of a Spark session: nothing stays, whatever happens to the session."""

import subprocess
import sys
from pathlib import Path

from config.env import CHECKOUT
from delivery.history.spark.scratch import scratch_folder

HOLDER = """
import sys
from pathlib import Path
from delivery.history.spark.scratch import scratch_folder
with scratch_folder(Path(sys.argv[1])) as folder:
    (folder / "rows").write_text("of a message")
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_the_files_of_a_session_are_removed_with_it(tmp_path: Path) -> None:
    with scratch_folder(tmp_path / "new") as folder:
        (folder / "rows").write_text("of a message")
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()


def test_a_session_removes_the_files_of_a_killed_one_and_no_others(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        folder = Path(holder.stdout.readline().strip())
        with scratch_folder(tmp_path) as beside:
            assert beside != folder
            assert (folder / "rows").exists()
        holder.kill()
        holder.wait()
    assert (folder / "rows").exists()
    with scratch_folder(tmp_path):
        assert not folder.exists()
