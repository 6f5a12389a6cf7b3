"""Jenkins as a publisher, through TeamForge's plugin."""

from dataclasses import dataclass, field
from typing import Any

import orjson
from django.utils import timezone

from subscriptions.models import Publisher, Scope
from subscriptions.publish_ids import rotate_publish_id
from tests.support import factories
from tests.unit.delivery.api.client import ApiAnswer, Caller, Json

EVENT = "Jenkins.Build"


@dataclass(frozen=True, slots=True)
class Jenkins:
    """A publisher of Jenkins.Build, as its plugin is configured: an id, a name and a password."""

    publisher: Publisher
    id: str
    key: str
    _caller: Caller = field(default_factory=lambda: Caller(None))

    def post(self, path: str, body: bytes = b"{}", **headers: str) -> ApiAnswer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._caller.ask("POST", path, body, headers=named)

    def publish(self, body: bytes = b"{}", *, prefix: str = "/v4", **headers: str) -> ApiAnswer:
        return self.post(f"{prefix}/inbox/{EVENT}/{self.id}", body, **headers)

    def log_in(self, *, password: str = "", **given: Any) -> ApiAnswer:
        credentials = {"Username": self.publisher.name, "Password": password or self.key} | given
        return self.post("/login", orjson.dumps(credentials))

    def token(self) -> str:
        answer = self.log_in()
        assert answer.status == 200, answer
        token: str = answer.body["Response"]["SessionToken"]
        return token


def jenkins(name: str = "jenkins", **fields: Any) -> Jenkins:
    publisher = factories.publisher(name, **fields)
    _, text = rotate_publish_id(publisher, now=timezone.now())
    return Jenkins(publisher, text, factories.api_key(Scope.PUBLISH, publisher=publisher)[1])


def enveloped(answer: ApiAnswer, status: int) -> Json:
    """Return the envelope of an answer that has to be one, of this status."""
    assert answer.status == status, answer
    assert answer.content_type == "application/json"
    envelope: Json = answer.body
    assert list(envelope) == [
        "HTTPStatusCode",
        "HTTPStatusText",
        "Success",
        "ErrorText",
        "ErrorMessages",
        "Response",
    ]
    assert (envelope["HTTPStatusCode"], envelope["Success"]) == (status, status < 400)
    assert bool(envelope["ErrorText"]) == (status >= 400)
    return envelope
