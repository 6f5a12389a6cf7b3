"""Which static files this checkout and its packages have: a digest over them."""

import hashlib
from functools import cache
from importlib import metadata

from config.env import ASSETS, CHECKOUT

FOLDER = ASSETS / "static"
# They bring static files, or decide how they are built.
PACKAGES = ("Brotli", "Django", "django-unfold", "whitenoise")


@cache
def sources_digest() -> str:
    """Return a digest of our own static files and of the versions of all packages with others."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        digest.update(f"{package} {metadata.version(package)}\n".encode())
    # With the rules by which they are collected.
    rules = CHECKOUT / "config/web/static_files.py"
    for path in sorted([*FOLDER.rglob("*"), rules]):
        if path.is_file():
            digest.update(f"{path.relative_to(CHECKOUT)} {path.stat().st_size}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
