"""The outputs of scripts for deliveries, partitioned by the ranges of messages."""

import django.db.models.deletion
from django.db import migrations, models

from delivery.states import OutcomeClass

TABLE = """
CREATE TABLE delivery_scriptoutput (
    delivery_id bigint PRIMARY KEY,
    script_version integer NOT NULL,
    body bytea,
    content_type varchar(255) NOT NULL,
    headers jsonb NOT NULL,
    path text NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now()
) PARTITION BY RANGE (delivery_id);
CREATE TABLE delivery_scriptoutput_rest PARTITION OF delivery_scriptoutput DEFAULT;

CREATE FUNCTION delivery_make_outputs(first bigint, until bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'CREATE TABLE %I PARTITION OF delivery_scriptoutput FOR VALUES FROM (%s) TO (%s)',
        'delivery_scriptoutput_' || first, first << 20, until << 20
    );
END
$$;
SELECT delivery_make_outputs(first_id, until_id) FROM delivery_messagerange;

CREATE OR REPLACE FUNCTION delivery_make_range(first bigint, until bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    of_messages text := format('FOR VALUES FROM (%s) TO (%s)', first, until);
    of_deliveries text := format('FOR VALUES FROM (%s) TO (%s)', first << 20, until << 20);
BEGIN
    INSERT INTO delivery_messagerange (first_id, until_id, made_at) VALUES (first, until, clock_timestamp());
    EXECUTE format('CREATE TABLE %I PARTITION OF delivery_message %s', 'delivery_message_' || first, of_messages);
    EXECUTE format(
        'CREATE TABLE %I PARTITION OF delivery_loggedattempt %s', 'delivery_loggedattempt_' || first, of_deliveries
    );
    PERFORM delivery_make_settled('delivery_settled_' || first, of_deliveries);
    PERFORM delivery_make_outputs(first, until);
END
$$;

CREATE OR REPLACE FUNCTION delivery_drop_range(first bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'delivery_scriptoutput_', 'delivery_loggedattempt_', 'delivery_settled_', 'delivery_message_'
    ] LOOP
        EXECUTE format('DROP TABLE %I', name || first);
    END LOOP;
    DELETE FROM delivery_messagerange WHERE first_id = first;
END
$$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("delivery", "0007_held"),
        ("subscriptions", "0010_scripts"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(TABLE)],
            state_operations=[
                migrations.CreateModel(
                    "ScriptOutput",
                    [
                        (
                            "delivery",
                            models.OneToOneField(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                primary_key=True,
                                related_name="script_output",
                                serialize=False,
                                to="delivery.delivery",
                            ),
                        ),
                        ("script_version", models.IntegerField()),
                        ("body", models.BinaryField(null=True)),
                        ("content_type", models.CharField(blank=True, default="", max_length=255)),
                        ("headers", models.JSONField(default=dict)),
                        ("path", models.TextField(blank=True, default="")),
                        ("made_at", models.DateTimeField(db_default=django.db.models.functions.Now())),
                    ],
                    {"default_permissions": ()},
                ),
                migrations.AlterField(
                    "loggedattempt",
                    "outcome",
                    models.CharField(choices=OutcomeClass.choices, max_length=16),
                ),
            ],
        ),
    ]
