"""Whether this process lives, and whether it can serve."""

from functools import lru_cache

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

from subscriptions.api.problems import DATABASE_AWAY, Problem, database_away


def live(_request: HttpRequest) -> HttpResponse:
    """Answer `/healthz`: the process runs; nothing else is asked."""
    return JsonResponse({"status": "ok"})


def ready(_request: HttpRequest) -> HttpResponse:
    """Answer `/readyz`: 200 when the database answers and has all migrations, else 503."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        _require_migrations()
    except DATABASE_AWAY:
        return database_away().response()
    except Problem as problem:
        return problem.response()
    return JsonResponse({"status": "ready"})


@lru_cache(maxsize=1)
def _require_migrations() -> None:
    # What was migrated stays so while we run: only the refusal, an exception, is not remembered.
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise Problem(503, "not-migrated", "Migrations are missing; run manage.py migrate.")
