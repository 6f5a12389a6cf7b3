"""Whether Spark's master or server answers, asked before a client which would wait for minutes.

Spark's own clients try again: a standalone master's for a minute, Spark Connect's for ten. So each
address gets a greeting of the protocol first. A server answers it at once, before it demands
authentication. Stdlib only: the storage's probe, which imports this, has to start fast.
"""

import re
import socket
import ssl
import struct
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import urlsplit

ANSWER_SECONDS = 8.0
# A frame of Spark's protocol: length, type, and the name of a file nobody has. Of other names the
# master would log an error.
_STREAM_REQUEST, _STREAM_FAILURE = 6, 8
_STREAM = b"/files/inturn"
_SPARK_GREETING = struct.pack("!qbi", 13 + len(_STREAM), _STREAM_REQUEST, len(_STREAM)) + _STREAM
_TLS_ALERT = b"\x15"
# HTTP/2's preface and settings, answered by the server with its own.
_GRPC_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
_HTTP_GREETING = b"GET /version HTTP/1.0\r\n\r\n"
# Key and password before a URL's host, and its parameters.
_SECRET = re.compile(r"(?<=://)[^/@]*:[^/@]*@|\?.*")
_CONNECT_PACKAGES = ("grpc", "grpc_status", "pandas", "google.rpc")


class ReachError(RuntimeError):
    """The archive's storage or Spark does not answer at the place of the settings.

    The message names the setting and the reason, for people; nothing is wrong inside Inturn.
    """


def shown_place(url: str) -> str:
    """Return the URL of a storage without what may be secret in it."""
    return _SECRET.sub("", url)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    """An address of a setting, and the bytes of the server's answer."""

    setting: str
    address: str
    port: int
    greeting: bytes
    has_tls: bool = False

    def answer(self) -> bytes:
        """Return the first bytes of the answer; raises ReachError.

        They are empty if the server hangs up, or has TLS, of which no certificate is checked here.
        """
        found: list[bytes | OSError] = []
        # The look-up of a name has no time-out.
        asking = threading.Thread(target=self._ask, args=[found], daemon=True)
        asking.start()
        asking.join(ANSWER_SECONDS + 1)
        outcome = found[0] if found else TimeoutError()
        if isinstance(outcome, bytes):
            return outcome
        raise self.refused(_in_words(outcome)) from outcome

    def refused(self, reason: str) -> ReachError:
        return ReachError(f"{self.setting}: {reason}. Correct or unset it, and run it again.")

    def _ask(self, found: list[bytes | OSError]) -> None:
        try:
            url = urlsplit(f"//{self.address}")
            host, port = url.hostname or "", url.port or self.port
            with socket.create_connection((host, port), timeout=ANSWER_SECONDS) as connection:
                if not self.has_tls:
                    connection.sendall(self.greeting)
                    found.append(connection.recv(4096))
                    return
                context = ssl.create_default_context()
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                context.wrap_socket(connection, server_hostname=host).close()
                found.append(b"")
        except OSError as error:
            found.append(error)
        except ValueError as error:  # of a port or a name
            found.append(OSError(f"{self.address} is no address: {error}"))


def require_master(master: str, *, environment: Mapping[str, str]) -> None:
    """Raise ReachError if there is no such master; a master on this machine is always there.

    The environment is the driver's JVM's.
    """
    setting = f"SPARK_MASTER={master}"
    kind, _, address = master.partition("://")
    if kind == "yarn" and not environment.keys() & {"HADOOP_CONF_DIR", "YARN_CONF_DIR"}:
        raise ReachError(
            f"{setting} finds its cluster by the files in HADOOP_CONF_DIR or YARN_CONF_DIR: "
            "set one of them, and run it again."
        )
    if kind == "spark":
        _require_standalone(setting, address.split(","))
    elif kind == "k8s":
        address = address.removeprefix("https://").rstrip("/")
        has_tls = not address.startswith("http://")
        _Server(
            setting=setting,
            address=address.removeprefix("http://"),
            port=443 if has_tls else 80,
            greeting=_HTTP_GREETING,
            has_tls=has_tls,
        ).answer()


def require_connect(remote: str) -> None:
    """Raise ReachError if Spark Connect's client is not installed, or the server not there."""
    # The parameters may have a token.
    address, _, parameters = remote.removeprefix("sc://").partition("/")
    setting = f"SPARK_REMOTE=sc://{address}"
    if not all(map(_is_installed, _CONNECT_PACKAGES)):
        raise ReachError(
            f"{setting} needs the packages of Spark Connect's client, which are not installed: "
            "pip install 'pyspark[connect]', and run it again."
        )
    has_tls = "use_ssl=true" in parameters.lower() or "token=" in parameters.lower()
    _Server(
        setting=setting, address=address, port=15002, greeting=_GRPC_GREETING, has_tls=has_tls
    ).answer()


def _require_standalone(setting: str, addresses: Sequence[str]) -> None:
    """Raise ReachError with the last reason if none of the addresses is a master's."""
    refused: ReachError | None = None
    for address in addresses:
        server = _Server(setting=setting, address=address, port=7077, greeting=_SPARK_GREETING)
        try:
            answer = server.answer()
        except ReachError as error:
            refused = error
            continue
        if not answer or answer[:1] == _TLS_ALERT or answer[8:9] == bytes([_STREAM_FAILURE]):
            return
        refused = server.refused(f"{address} answers, but it is no master of Spark")
    if refused is not None:
        raise refused


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _in_words(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return f"it does not answer within {ANSWER_SECONDS:.0f} s"
    if isinstance(error, socket.gaierror):
        return "there is no host of this name"
    return f"no connection ({error.strerror or str(error) or type(error).__name__})"
