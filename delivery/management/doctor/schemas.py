"""The check of stored JSON Schemas: which event types have a schema that is refused now."""

from collections.abc import Iterator

from delivery.management.doctor.findings import CheckResult, Severity
from subscriptions.models import EventType
from subscriptions.values.json_schemas import JSONSchemaError, check_json_schema


def check_schemas() -> Iterator[CheckResult]:
    """Yield a finding for each event type whose stored schema is refused, or that none is."""
    is_well = True
    with_schema = EventType.objects.filter(json_schema__isnull=False).order_by("name")
    for event_type in with_schema.iterator(chunk_size=100):
        try:
            check_json_schema(event_type.json_schema)
        except JSONSchemaError as error:
            is_well = False
            yield CheckResult(
                check="schema",
                severity=Severity.FAILED,
                text=f"{event_type.name}: {error}",
                advice="Change the schema of this event type; its messages may be refused.",
            )
    if is_well:
        yield CheckResult(
            check="schema", severity=Severity.OK, text="no stored JSON Schema is refused"
        )
