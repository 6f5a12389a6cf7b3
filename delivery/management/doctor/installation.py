"""Checks of the installation itself: base URL, proxy, clock and disk."""

import platform
import secrets
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from django.db import connection

from delivery.database.required_settings import database_refusals, database_warnings
from delivery.management.client.http import NoAnswerError, bare_session, call_trusted
from delivery.management.client.rest import ClientError, RestClient
from delivery.management.client.smoke import remove_traces
from delivery.management.doctor.findings import CheckResult, Severity
from delivery.management.doctor.python_version import python_weakness

# Retries are due by the database's clock, and signatures have this machine's time: receivers
# usually accept a difference of five minutes.
CLOCK_WARNING_SECONDS = 1.0
CLOCK_FAILED_SECONDS = 60.0
FREE_DISK_FRACTION = 0.1

_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
_UNDERSCORES = (
    "Let the proxy hand on header names with an underscore (nginx: underscores_in_headers on). "
    "Until then no subscription with a header_filter_string "
    "receives anything that is published through it."
)


def check_installation(base_url: str, *, key: str, home: Path) -> Iterator[CheckResult]:
    """Check the installation from this machine, with a manage key, and remove all traces."""
    yield check_base_url(base_url)
    ready = check_ready(base_url)
    yield ready
    if ready.severity is not Severity.FAILED:
        yield check_filter_string(base_url, key=key)
        yield check_callbacks(base_url)
    yield check_database()
    yield check_python()
    yield check_clock()
    yield check_disk(home)


def check_base_url(base_url: str) -> CheckResult:
    """Check the base URL, with which callbacks and links in messages begin."""
    parts = urlsplit(base_url)
    if parts.hostname in _LOCAL_HOSTS:
        return CheckResult(
            check="base URL",
            severity=Severity.WARNING,
            text=f"{base_url} leads to this machine only",
            advice="Set INTURN_BASE_URL to the address that publishers and receivers use.",
        )
    if parts.scheme != "https":
        return CheckResult(
            check="base URL",
            severity=Severity.WARNING,
            text=f"{base_url} is not encrypted",
            advice=(
                "Serve it by a proxy that speaks TLS, "
                "and set INTURN_BASE_URL to its https:// address."
            ),
        )
    return CheckResult(check="base URL", severity=Severity.OK, text=base_url)


def check_ready(base_url: str) -> CheckResult:
    """Request `/readyz` by the base URL, the way in which answers to callbacks reach Inturn."""
    url = f"{base_url}/readyz"
    try:
        with bare_session() as session:
            answer = call_trusted(session, "GET", url, body=None, headers={})
    except NoAnswerError as error:
        return CheckResult(
            check="proxy",
            severity=Severity.FAILED,
            text=f"{url} does not answer: {error}",
            advice="Start Inturn, or mend INTURN_BASE_URL, the proxy or its certificate.",
        )
    if answer.status_code != 200 or b'"ready"' not in answer.content:
        return CheckResult(
            check="proxy",
            severity=Severity.FAILED,
            text=f"{url} answers {answer.status_code}, and not as an Inturn that is ready",
            advice=(
                "See the log of Inturn, and whether the proxy hands on to the right port and path."
            ),
        )
    return CheckResult(check="proxy", severity=Severity.OK, text=f"{url} is ready")


def check_filter_string(base_url: str, *, key: str) -> CheckResult:
    """Publish a probe with FILTER_STRING by the base URL, to a subscription which requires it."""
    name = f"doctor-{secrets.token_hex(6)}"
    try:
        arrives = _publish_probe(base_url, name, key=key)
    except ClientError as error:
        return CheckResult(
            check="FILTER_STRING",
            severity=Severity.FAILED,
            text=f"no probe can be published through {base_url}: {error}",
            advice=(
                "See the answer; the proxy must hand on POST, Authorization and the body unchanged."
            ),
        )
    finally:
        remove_traces(name)
    if not arrives:
        return CheckResult(
            check="FILTER_STRING",
            severity=Severity.FAILED,
            text="the header is lost on the way to Inturn",
            advice=_UNDERSCORES,
        )
    return CheckResult(check="FILTER_STRING", severity=Severity.OK, text="the header arrives")


def _publish_probe(base_url: str, name: str, *, key: str) -> bool:
    """Return whether the probe qualified for a subscription that requires FILTER_STRING."""
    with RestClient(base_url, key=key) as client:
        client.post("event-types", {"name": name})
        client.post("publishers", {"name": name, "event_types": [name]})
        publisher_key = client.post(f"publishers/{name}/keys", {})["key"]
        client.post("subscribers", {"name": name})
        client.post(
            "subscriptions",
            {
                "name": "probe",
                "subscriber": name,
                "event_type": name,
                "mode": "PULL",
                "header_filter_string": name,
            },
        )
    with RestClient(base_url, key=publisher_key) as publisher:
        accepted = publisher.call(
            "POST", f"events/{name}/messages", body=b"{}", headers={"FILTER_STRING": name}
        )
    return bool(accepted["deliveries"])


def check_callbacks(base_url: str) -> CheckResult:
    """Answer an unrequested callback, at the endpoints' address."""
    url = f"{base_url}/callbacks/doctor"
    try:
        with bare_session() as session:
            answer = call_trusted(
                session, "POST", url, body=b"{}", headers={"Content-Type": "application/json"}
            )
        text = f"answers {answer.status_code}"
        is_inturn = answer.status_code == 404 and b"no-such-callback" in answer.content
    except NoAnswerError as error:
        text, is_inturn = f"does not answer: {error}", False
    if is_inturn:
        return CheckResult(
            check="callbacks", severity=Severity.OK, text="answers of endpoints arrive"
        )
    return CheckResult(
        check="callbacks",
        severity=Severity.FAILED,
        text=f"POST {url} {text}, and not Inturn's 404",
        advice=(
            "Let the proxy hand on POST /callbacks/… and /replies/…: "
            "endpoints answer QUEUE messages with a CallbackURL there."
        ),
    )


def check_database() -> CheckResult:
    """Check the database for settings with which an accepted message could be lost."""
    if faults := [*database_refusals(), *database_warnings()]:
        text, _, advice = faults[0].partition(": ")
        return CheckResult(
            check="database",
            severity=Severity.FAILED,
            text=text,
            advice=f"{advice[:1].upper()}{advice[1:]}.",
        )
    return CheckResult(
        check="database", severity=Severity.OK, text="its settings keep accepted messages"
    )


def check_python() -> CheckResult:
    if weakness := python_weakness():
        return CheckResult(
            check="Python",
            severity=Severity.WARNING,
            text=weakness,
            advice="Update Python, and remove the folder .venv: the next start makes it again.",
        )
    return CheckResult(check="Python", severity=Severity.OK, text=platform.python_version())


def check_clock() -> CheckResult:
    """Compare this machine's clock with the database's, at the midpoint of a query."""
    connection.ensure_connection()
    with connection.cursor() as cursor:
        start, before = time.monotonic(), datetime.now(UTC)
        cursor.execute("SELECT clock_timestamp()")
        (theirs,) = cursor.fetchone()
        seconds_there_and_back = time.monotonic() - start
    ahead = (before - theirs).total_seconds() + seconds_there_and_back / 2
    if abs(ahead) < CLOCK_WARNING_SECONDS:
        return CheckResult(
            check="clock", severity=Severity.OK, text="within a second of the database's"
        )
    return CheckResult(
        check="clock",
        severity=Severity.FAILED if abs(ahead) >= CLOCK_FAILED_SECONDS else Severity.WARNING,
        text=f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the database's",
        advice=(
            "Synchronise both machines by NTP: retries are due by the database's clock, "
            "and signatures have this machine's."
        ),
    )


def check_disk(home: Path) -> CheckResult:
    """Check the free space of the disk at INTURN_HOME, where history and embedded database grow."""
    usage = shutil.disk_usage(home if home.exists() else home.parent)
    text = f"{usage.free / 1e9:.1f} GB of {usage.total / 1e9:.0f} GB are free at {home}"
    if usage.free < usage.total * FREE_DISK_FRACTION:
        return CheckResult(
            check="disk",
            severity=Severity.WARNING,
            text=text,
            advice="Make room, or shorten INTURN_RETENTION_DAYS.",
        )
    return CheckResult(check="disk", severity=Severity.OK, text=text)
