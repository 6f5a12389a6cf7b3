"""A proxy that drops header names with an underscore, as nginx does by default."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import requests


@contextmanager
def dropping_proxy(target: str) -> Iterator[str]:
    """Serve on a free port of the loopback; yield the proxy's URL."""

    class Dropping(BaseHTTPRequestHandler):
        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            kept = {name: value for name, value in self.headers.items() if "_" not in name}
            answer = requests.request(
                self.command, f"{target}{self.path}", data=body, headers=kept, timeout=30
            )
            self.send_response(answer.status_code)
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        do_GET = do_POST = forward  # noqa: N815 - the library's names

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Dropping) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
