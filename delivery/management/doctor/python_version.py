"""Whether this Python is known to be weak against hostile requests. Stdlib only."""

import sys

# The releases with fixes of faults usable against a web server; minor versions not named here began
# with the fix.
_FIXED_IN = {(3, 11): 10, (3, 12): 6}


def python_weakness(version: tuple[int, int, int] = sys.version_info[:3]) -> str:
    """Return a warning if this Python is known to be slow with hostile headers; empty if not."""
    minor = version[:2]
    fixed = _FIXED_IN.get(minor)
    if fixed is None or version[2] >= fixed:
        return ""
    name = ".".join(map(str, minor))
    return (
        f"Python {name}.{version[2]} takes very long for hostile cookies (CVE-2024-7592). Inturn "
        f"keeps them from it, but update to {name}.{fixed} or later"
    )
