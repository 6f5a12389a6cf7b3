"""Health checks: whether this process runs, and whether it can serve."""

from collections.abc import Callable
from functools import lru_cache

from django.conf import settings
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase

from delivery.database.parts import PARTS, running_sessions
from delivery.database.versions import missing_migrations, unknown_migrations
from delivery.incoming.problems import Problem, database_read_only, problem_of_database
from subscriptions.database_away import reconnect_next_time

# Load balancers and Prometheus ask by an address, which no installation lists as a host.
PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
ASKED_HOST = "inturn.asked_host"


def answer_any_host(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Let probes pass the check of the host, as a middleware before that check.

    The requested host is kept as ASKED_HOST.
    """

    def answered(request: HttpRequest) -> HttpResponseBase:
        if request.path_info in PROBES:
            request.META[ASKED_HOST] = request.META.get("HTTP_HOST", "")
            request.META["HTTP_HOST"] = "localhost"
        return get_response(request)

    return answered


def live(_request: HttpRequest) -> HttpResponse:
    """Answer `/healthz`: the process runs; nothing else is checked."""
    return JsonResponse({"status": "ok", "version": settings.VERSION})


def ready(request: HttpRequest) -> HttpResponse:
    """Answer `/readyz`: 200 if the database is reachable, writable and migrated, otherwise 503.

    `?part=senders` (or `chores`, `history`) also requires such a part at work on some machine.
    """
    part = request.GET.get("part", "")
    try:
        _require_writable()
        _require_migrations()
        if part:
            return JsonResponse({"status": "ready", "part": part, "running": _running(part)})
    except Problem as problem:
        return problem.response()
    except Error as error:
        away = problem_of_database(error)
        if away is None:
            raise
        return away.response()
    return JsonResponse({"status": "ready"})


def _running(part: str) -> int:
    if part not in PARTS:
        raise Problem(400, "unknown-part", f"Give part as one of {', '.join(PARTS)}.")
    running = running_sessions()[part]
    if not running:
        detail = f"No {part} work on any machine: start `manage.py up`, or that part."
        raise Problem(503, "part-not-running", detail)
    return running


def _require_writable() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('transaction_read_only')::boolean")
        if cursor.fetchone() == (True,):
            reconnect_next_time()
            raise database_read_only()


@lru_cache(maxsize=1)
def _require_migrations() -> None:
    # Cached, because migrations are not undone while we run; a refusal is an exception, which is
    # not.
    if missing_migrations():
        raise Problem(503, "not-migrated", "Migrations are missing; run manage.py migrate.")
    if unknown_migrations():
        detail = "The database is of a newer version of Inturn; start that version or a later one."
        raise Problem(503, "newer-database", detail)
