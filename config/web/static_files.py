"""Static files: collected once for each state of their sources, with hashed names, compressed."""

import gzip
import shutil
import tempfile
from pathlib import Path
from typing import Any

import brotli
from django.conf import settings
from django.contrib.staticfiles.management.commands import collectstatic
from django.core.management import call_command
from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage

# The best levels, 11 and 9, take twenty times as long and save a tenth: a first start waits for it.
BROTLI_QUALITY = 5
GZIP_LEVEL = 6
# No page uses them, and source maps are for the packages' own developers.
UNUSED = (
    "*.map",
    "LICENSE*",
    "*.md",
    "*.txt",
    "rest_framework",
    "jquery.js",
    "xregexp",
    "urlify.js",
    "prepopulate.js",
    # Languages other than English.
    "*/select2/i18n/[!e]*",
    "*/select2/i18n/e[!n]*",
)


class _FastCompressor(Compressor):  # type: ignore[misc]  # It has no types.
    @staticmethod
    def compress_brotli(data: bytes) -> bytes:
        compressed: bytes = brotli.compress(data, quality=BROTLI_QUALITY)
        return compressed

    # Browsers ask for brotli by https and from their own machine only.
    @staticmethod
    def compress_gzip(data: bytes) -> bytes:
        return gzip.compress(data, compresslevel=GZIP_LEVEL, mtime=0)


class HashedFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # It has no types.
    """Files whose names have a hash of their content, so that browsers may keep them for ever.

    Where nothing is collected, as for most tests, each file has the plain name.
    """

    keep_only_hashed_files = True
    # Files name others in their styles. Names of source maps stay.
    patterns = (("*.css", CompressedManifestStaticFilesStorage.patterns[0][1][:2]),)

    def create_compressor(self, **options: Any) -> Compressor:
        return _FastCompressor(**options)

    def stored_name(self, name: str) -> str:
        # If a file is not collected by mistake, a page lacks the script; it does not fail.
        is_collected = self.hash_key(name) in self.hashed_files
        stored: str = super().stored_name(name) if is_collected else name
        return stored


def collect_static_files() -> None:
    """Collect into STATIC_ROOT, unless done already: the name changes with the sources.

    The folder appears when it is complete. The previous folder stays, for open pages and for other
    machines with the same home.
    """
    folder: Path = settings.STATIC_ROOT
    if (folder / HashedFiles.manifest_name).exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=folder.parent))
    command = collectstatic.Command()
    command.storage = HashedFiles(location=unfinished)
    call_command(command, interactive=False, verbosity=0, ignore_patterns=list(UNUSED))
    try:
        unfinished.rename(folder)
    except OSError:
        # Another process has just done the same.
        if not (folder / HashedFiles.manifest_name).exists():
            raise
        shutil.rmtree(unfinished)
    _remove_all_but_last(folder)


def _remove_all_but_last(folder: Path) -> None:
    others = [path for path in folder.parent.iterdir() if path != folder]
    for old in sorted(others, key=lambda path: path.stat().st_mtime)[:-1]:
        if old.is_dir():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.unlink(missing_ok=True)
