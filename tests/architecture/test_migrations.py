"""Migrations after the first release run while the version before goes on working.

Write an index with `ResumableAddIndexConcurrently`, or with `AddPartitionedIndexConcurrently` if
the table has partitions, in a separate migration with `atomic = False`; give a new column a
`db_default`, or let it be null; add a constraint as NOT VALID and validate it in the next
migration; drop a column or a table a version after the last code that reads it.
"""

import pytest

from tests.architecture import migrations

# Objections that were considered: (app, migration) → {rule: the reason why it may stay}.
ACCEPTED: dict[tuple[str, str], dict[str, str]] = {
    ("delivery", "0006_shadow_or_redundant"): {
        "require-concurrent-index-creation": (
            "the index ON ONLY the partitioned table has no rows; those of the partitions are "
            "built concurrently"
        ),
    },
}


@pytest.mark.django_db
def test_new_migrations_hold_up_no_running_version() -> None:
    found = {
        (app, name): [
            reported
            for reported in (
                *migrations.objections(migrations.statements(app, name)),
                *migrations.unsafe_operations(app, name),
            )
            if reported.partition(",")[0] not in ACCEPTED.get((app, name), {})
        ]
        for app, name in migrations.new_migrations()
    }
    assert {migration: reported for migration, reported in found.items() if reported} == {}


@pytest.mark.parametrize(
    ("sql", "rule"),
    [
        (
            "BEGIN; CREATE INDEX slow ON delivery_message (id); COMMIT;",
            "require-concurrent-index-creation",
        ),
        (
            "ALTER TABLE delivery_message ADD COLUMN more text NOT NULL;",
            "adding-required-field",
        ),
        ("ALTER TABLE delivery_message DROP COLUMN headers;", "ban-drop-column"),
        ("ALTER TABLE delivery_message RENAME COLUMN headers TO header;", "renaming-column"),
        ("ALTER TABLE delivery_lane ALTER COLUMN id TYPE text;", "changing-column-type"),
        (
            "ALTER TABLE delivery_lane ADD CONSTRAINT positive CHECK (id > 0);",
            "constraint-missing-not-valid",
        ),
        (
            "ALTER TABLE delivery_message ALTER COLUMN headers SET NOT NULL;",
            "adding-not-nullable-field",
        ),
    ],
)
def test_a_migration_that_holds_up_others_is_found(sql: str, rule: str) -> None:
    assert rule in [reported.partition(",")[0] for reported in migrations.objections(sql)]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE INDEX CONCURRENTLY quick ON delivery_message (id);",
        "ALTER TABLE delivery_message ADD COLUMN more text DEFAULT '' NOT NULL;",
        "BEGIN; CREATE TABLE more (id bigint PRIMARY KEY, at timestamptz NOT NULL);"
        "CREATE INDEX more_at ON more (at); COMMIT;",
    ],
)
def test_a_migration_that_holds_up_nobody_passes(sql: str) -> None:
    assert list(migrations.objections(sql)) == []
