"""A credential is looked up before its request waits among those of strangers."""

from contextlib import ExitStack
from pathlib import Path

from tests.system.operation.installation import eventually
from tests.unit.config.applications import THREADS
from tests.unit.config.serving import serving


def test_a_first_request_with_a_credential_does_not_wait_for_strangers(tmp_path: Path) -> None:
    def with_credential(path: str) -> bytes:
        request = f"GET {path} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer key\r\n\r\n"
        return served.ask(request.encode())[1]

    with serving("bridged_unremembered", tmp_path) as served, ExitStack() as stack:
        for _ in range(THREADS):
            stranger = stack.enter_context(served.connect())
            stranger.sendall(b"GET /held HTTP/1.1\r\nHost: test\r\n\r\n")
        anonymous = str(THREADS // 2).encode()
        eventually(lambda: with_credential("/") == anonymous, "strangers have their threads")
        assert with_credential("/release") == anonymous
