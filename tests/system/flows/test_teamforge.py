"""The vendor's Jenkins plugin and the started product: requests, and reading of answers."""

import json
import secrets
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.product import Flow, Product
from tests.support.raw_http import exchange
from tests.support.receivers import Answer, Receiver
from tests.support.rest import Json

BUILD = {
    "buildId": "17",
    "eventTime": "2026-11-25T10:00:00Z",
    "buildUrl": "http://ci.example/job/app/17/",
    "status": "Successful",
    "createdBy": "Jürgen",
    "testResult": {
        "passedCount": 3,
        "failedCount": 0,
        "ignoredCount": 1,
        "url": "http://ci.example/job/app/17/testReport",
    },
    "repository": {"type": "git", "url": "https://git.example/app.git", "revisions": ["2fd4e1c6"]},
    "duration": "42",
}
# The output of the plugin's JSON library, encoded by its HTTP client's default charset.
BODY = json.dumps(BUILD, separators=(",", ":"), ensure_ascii=False).encode("iso-8859-1")


def written(path: str, body: bytes, *, host: str, token: str = "") -> bytes:
    """Return the request as Apache HttpClient 4.5 writes it, the plugin's headers first."""
    lines = [
        f"POST {path} HTTP/1.1",
        *([f"Authorization: {token}"] if token else []),
        "Accept: application/json",
        "Content-type: application/json",
        f"Content-Length: {len(body)}",
        f"Host: {host}",
        "Connection: Keep-Alive",
        "User-Agent: Apache-HttpClient/4.5.10 (Java/1.8.0_252)",
        "Accept-Encoding: gzip,deflate",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Plugin:
    """Sends the plugin's requests for a webhook URL, each on its own connection."""

    def __init__(self, product: Product) -> None:
        self._base_url = product.rest.base_url

    def send(self, path: str, body: bytes, *, token: str = "") -> tuple[int, bytes]:
        host = urlsplit(self._base_url).netloc
        answer = exchange(self._base_url, written(path, body, host=host, token=token))
        return answer.status, answer.body

    def notify(self, path: str, *, username: str = "", password: str = "") -> int:
        """Return the status by which the plugin judges a build; 0 without a token."""
        if "/v4/" in path:
            return self.send(path, BODY)[0]
        login = path[: path.index("/inbox")] + "/login"
        credentials = json.dumps(
            {"Username": username, "Password": password}, separators=(",", ":")
        ).encode()
        status, answer = self.send(login, credentials)
        if status != 200:
            return 0
        return self.send(path, BODY, token=json.loads(answer)["Response"]["SessionToken"])[0]


@pytest.fixture
def flow(product: Product) -> Flow:
    return product.flow("Jenkins.Build")


@pytest.fixture
def plugin(product: Product) -> Plugin:
    return Plugin(product)


def publish_id(flow: Flow) -> str:
    made: Json = flow.rest.post(f"publishers/{flow.event_type}/publish-ids", {})
    return str(made["publish_id"])


def test_a_build_stays_successful_by_the_address_alone(
    flow: Flow, receiver: Receiver, plugin: Plugin
) -> None:
    of = flow.subscribe(receiver.endpoint("builds"))
    assert plugin.notify(f"/v4/inbox/{flow.event_type}/{publish_id(flow)}") == 201
    (got,) = of.endpoint.wait_for_count(1)
    assert json.loads(got.body) == BUILD
    assert got.headers["Content-Type"] == "application/json"


def test_a_build_stays_successful_by_login_and_token(
    flow: Flow, receiver: Receiver, plugin: Plugin
) -> None:
    of = flow.subscribe(receiver.endpoint("builds"), filter="$$->'Body'->>'createdBy' = 'Jürgen'")
    path, key = f"/webr/inbox/{flow.event_type}/{publish_id(flow)}", flow.publisher.key
    assert plugin.notify(path, username=flow.event_type, password=key) == 201
    assert json.loads(of.endpoint.wait_for_count(1)[0].body) == BUILD
    assert plugin.notify(path, username=flow.event_type, password="wrong") == 0


def test_a_wrong_address_is_the_400_that_the_plugin_explains(flow: Flow, plugin: Plugin) -> None:
    assert plugin.notify(f"/v4/inbox/{flow.event_type}/{secrets.token_hex(16)}") == 400
    assert plugin.notify(f"/v4/inbox/No.Such.Event/{publish_id(flow)}") == 400


def test_what_the_server_refuses_before_it_reads_it_has_the_envelope(flow: Flow) -> None:
    path = f"/v4/inbox/{flow.event_type}/{publish_id(flow)}"
    host = urlsplit(flow.rest.base_url).netloc
    too_long = written(path, b"", host=host).replace(b"Length: 0", b"Length: 999999999")
    chunks = b"2\r\n{}\r\n0\r\nSum: 1\r\n\r\n"
    broken = written(path, chunks, host=host).replace(
        b"Content-Length: %d" % len(chunks), b"Transfer-Encoding: chunked"
    )
    for request, status, text in ((too_long, 413, "longer than"), (broken, 400, "broke off")):
        answer = exchange(flow.rest.base_url, request)
        assert answer.status == status
        assert answer.headers["content-type"] == "application/json"
        assert (answer.json["HTTPStatusCode"], answer.json["Success"]) == (status, False)
        assert text in answer.json["ErrorText"]
    elsewhere = exchange(flow.rest.base_url, too_long.replace(b"/v4/inbox/", b"/api/v1/"))
    assert elsewhere.headers["content-type"] == "application/problem+json"


def test_order_is_that_of_the_native_address(
    flow: Flow, receiver: Receiver, plugin: Plugin
) -> None:
    of = flow.subscribe(receiver.endpoint("builds"))
    path = f"/v4/inbox/{flow.event_type}/{publish_id(flow)}"
    for number in range(40):
        body = b"%d" % number
        if number % 2:
            flow.publish(body)
        else:
            assert plugin.send(path, body)[0] == 201
    assert [int(got.body) for got in of.endpoint.wait_for_count(40)] == list(range(40))


def test_the_answer_of_a_sync_endpoint_is_handed_on_as_it_is(
    product: Product, receiver: Receiver, plugin: Plugin
) -> None:
    flow = product.flow("TeamForge.Presubmit", kind="SYNC")
    hook = receiver.endpoint("rules")
    hook.always(Answer(422, headers={"Content-Type": "text/plain"}, body=b"no title"))
    flow.subscribe(hook)
    assert plugin.send(f"/v4/inbox/{flow.event_type}/{publish_id(flow)}", BODY) == (
        422,
        b"no title",
    )


def test_curl_publishes_a_build_and_the_id_is_in_no_log(flow: Flow, tmp_path: Path) -> None:
    build, id = tmp_path / "build.json", publish_id(flow)
    build.write_bytes(BODY)
    url = f"{flow.rest.base_url}/v4/inbox/{flow.event_type}/{id}"
    command = [
        "curl",
        "-s",
        "-d",
        f"@{build}",
        "-H",
        "Content-type: application/json",
        "-w",
        "%{http_code}",
        url,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.endswith("201")
    logs = [path for path in (flow.product.home / "logs").rglob("*") if path.is_file()]
    assert logs
    assert not [path for path in logs if id in path.read_text(errors="replace")]
