"""The demo's builds.

A worker takes a job, and seconds later posts the result to the callback URL.
"""

import json
import logging
import random
import threading
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

log = logging.getLogger(__name__)

BUILD_SECONDS = 2.0
POST_SECONDS = 10.0


def begin_build(worker: str, callback_url: str) -> None:
    """Build in the background. A worker killed meanwhile never answers, as in a real system."""
    timer = threading.Timer(BUILD_SECONDS, _end, [worker, callback_url])
    timer.daemon = True
    timer.start()


def _end(worker: str, callback_url: str) -> None:
    result = "failed" if random.randrange(8) == 0 else "passed"
    body = json.dumps({"worker": worker.rpartition("/")[2], "result": result})
    try:
        status = _post(callback_url, body)
    except (OSError, HTTPException) as error:
        log.info("a callback of the demo was not answered", extra={"error": str(error)})
    else:
        log.info("a build of the demo is done", extra={"result": result, "status": status})


def _post(url: str, body: str) -> int:
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.netloc, timeout=POST_SECONDS)
    try:
        connection.request("POST", parts.path, body, {"Content-Type": "application/json"})
        return connection.getresponse().status
    finally:
        connection.close()
