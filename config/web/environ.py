"""The environ of a request, built from granian's RSGI scope as granian's WSGI would build it."""

import sys
from functools import lru_cache
from typing import Any, Protocol

from delivery.incoming.headers import UNREADABLE

Environ = dict[str, Any]

# Without the process's environment, which granian's WSGI mixes in, because it contains secrets.
_SAME_FOR_ALL: Environ = {
    "GATEWAY_INTERFACE": "CGI/1.1",
    "SCRIPT_NAME": "",
    "SERVER_SOFTWARE": "Granian",
    "wsgi.errors": sys.stderr,
    "wsgi.input_terminated": True,
    "wsgi.multiprocess": False,
    "wsgi.multithread": True,
    "wsgi.run_once": False,
    "wsgi.version": (1, 0),
}
_HEADERS_OF_WAITING = frozenset(
    {
        "HTTP_ACCEPT",
        "HTTP_AUTHORIZATION",
        "HTTP_HOST",
        "HTTP_X_FORWARDED_FOR",
        "HTTP_X_FORWARDED_PROTO",
    }
)
_FILTER_STRING = "HTTP_FILTER_STRING"
_LONGEST_KEPT = 64


class Headers(Protocol):
    """A request's headers: names in lower case, an item per value."""

    def __len__(self) -> int: ...
    def __contains__(self, name: str) -> bool: ...
    def keys(self) -> list[str]: ...
    def items(self) -> list[tuple[str, str]]: ...


class RsgiScope(Protocol):
    """The data of a request as granian provides it; each access to `headers` copies them."""

    http_version: str
    server: str
    client: str
    scheme: str
    method: str
    path: str
    query_string: str
    authority: str | None
    headers: Headers


def environ_of(scope: RsgiScope) -> Environ:
    """Return the environ without `wsgi.input`, and without the length of a body of unknown length.

    Known differences from granian's WSGI: a byte in the path outside UTF-8 arrives as U+FFFD, and
    non-ASCII values of a repeated header leave no empty item.
    """
    server_name, _, server_port = scope.server.rpartition(":")
    headers = scope.headers
    environ = _SAME_FOR_ALL | {
        "REQUEST_METHOD": scope.method,
        "PATH_INFO": _as_latin_1(scope.path),
        "QUERY_STRING": _as_latin_1(scope.query_string),
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "SERVER_NAME": server_name.strip("[]"),
        "SERVER_PORT": server_port,
        "REMOTE_ADDR": scope.client.rpartition(":")[0].strip("[]"),
        "wsgi.url_scheme": scope.scheme,
    }
    _add_headers(environ, headers)
    if "host" not in headers:
        environ["HTTP_HOST"] = scope.authority or ""
    return environ


def for_waiting(environ: Environ) -> Environ:
    """Return what another call needs: without the body's length, and without long headers."""
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith("HTTP_") or name in _HEADERS_OF_WAITING
    }
    return kept | {"CONTENT_LENGTH": "0"}


def _add_headers(environ: Environ, headers: Headers) -> None:
    underscored: Environ = {}
    names = set()
    for name, value in headers.items():
        names.add(name)
        target = underscored if "_" in name else environ
        key = _key(name)
        if key not in target:
            target[key] = value
        elif key != "CONTENT_TYPE":
            target[key] = f"{target[key]}{';' if name == 'cookie' else ','}{value}"
    _add_underscored(environ, underscored)
    if len(names) < len(headers):
        # granian reports of a non-ASCII value only that it exists; it becomes empty, as in WSGI.
        # The headers are no dict.
        unreadable = [name for name in headers.keys() if name not in names]  # noqa: SIM118
        environ[UNREADABLE] = ",".join(unreadable)
        for name in unreadable:
            environ.setdefault(_key(name), "")


def _as_latin_1(text: str) -> str:
    """Return the text's bytes in WSGI's encoding."""
    return text if text.isascii() else text.encode().decode("latin-1")


def _add_underscored(environ: Environ, underscored: Environ) -> None:
    """Add headers with underscores, unless the same name with hyphens exists.

    A proxy sets the hyphenated header; any client may send the other. `FILTER_STRING` always
    counts.
    """
    for key, value in underscored.items():
        if key == _FILTER_STRING:
            environ[key] = value
        else:
            environ.setdefault(key, value)


def _key(name: str) -> str:
    # Anonymous clients choose names: only short ones are kept.
    return _short_key(name) if len(name) <= _LONGEST_KEPT else _short_key.__wrapped__(name)


@lru_cache(maxsize=1024)
def _short_key(name: str) -> str:
    if name in ("content-type", "content-length"):
        return name.upper().replace("-", "_")
    return "HTTP_" + name.upper().replace("-", "_")
