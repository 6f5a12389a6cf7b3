"""Jobs for the script engine and their results, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from subscriptions.values.header_values import HeaderError, check_headers

MAX_SCRIPT_LENGTH = 100_000
MAX_PARAM_LENGTH = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A script and the input.

    `headers` is a JSON object, `message` is JSON if `is_json`, else any text.
    """

    script: str
    message: str
    is_json: bool
    headers: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The output of a script; without a `body` the message is unchanged.

    `is_json`: the body was an object.
    """

    body: bytes | None = field(repr=False)
    is_json: bool = False
    param: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    status_code: int = 200

    @property
    def path(self) -> str:
        """Return `$param` as the last segment of a URL's path."""
        return f"/{quote(self.param, safe='')}" if self.param else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptFault:
    """The reason a script cannot be saved or has no output.

    `text` may quote the message, because a script may throw any text. `shared`, for people who may
    not see payloads, then has `kind` instead. `line` and `column` count from 1, if known. `source`
    is the common script with the fault, if any.
    """

    text: str
    kind: str = ""
    line: int | None = None
    column: int | None = None
    source: str = ""

    def __str__(self) -> str:
        return f"{self._place}{self.text}"

    @property
    def shared(self) -> str:
        return f"{self._place}{self.kind or self.text}"

    @property
    def _place(self) -> str:
        of = f" of {self.source}" if self.source else ""
        return f"line {self.line}{of}: " if self.line is not None else ""


def output_of(answer: Mapping[str, object]) -> Output | ScriptFault:
    """Validate the values collected by the engine."""
    body, param, headers = answer["body"], str(answer["param"]), answer["headers"] or {}
    assert isinstance(headers, dict)
    if len(param) > MAX_PARAM_LENGTH or param in (".", ".."):
        return ScriptFault(
            text=f"$param is part of a path: at most {MAX_PARAM_LENGTH} characters, and not . or .."
        )
    try:
        check_headers(headers)
    except HeaderError as error:
        return ScriptFault(text=f"$outheader: {error}", kind="$outheader has an invalid header")
    status = answer["status"]
    if not isinstance(status, int) or not 200 <= status <= 599:
        return ScriptFault(
            text=f"$statuscode is {status}; it must be a whole number from 200 to 599",
            kind="$statuscode must be a whole number from 200 to 599",
        )
    return Output(
        body=None if body is None else str(body).encode(errors="replace"),
        is_json=bool(answer["is_json"]),
        param=param.encode(errors="replace").decode(),
        headers=headers,
        status_code=status,
    )
