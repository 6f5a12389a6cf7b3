"""Priorities of waiting deliveries. Only those have one whose subscriber sends by priority.

The index is empty while no subscriber does, and a settled delivery has no priority.
"""

from django.db import migrations, models

COLUMN = """
ALTER TABLE delivery_delivery ADD COLUMN priority smallint;
CREATE INDEX delivery_by_priority ON delivery_waiting (lane_id, subscription_id, priority DESC, id)
    WHERE status = 'PENDING' AND priority IS NOT NULL AND next_attempt_at IS NULL;

CREATE OR REPLACE FUNCTION delivery_settled_as(
    waiting delivery_waiting, status text, attempts int, reason text, settled_at timestamptz, redelivery text,
    started_at timestamptz DEFAULT NULL, duration_ms int DEFAULT NULL, status_code smallint DEFAULT NULL
) RETURNS SETOF delivery_delivery LANGUAGE sql STABLE AS $$
    SELECT
        waiting.id, waiting.message_id, waiting.subscription_id, waiting.lane_id, waiting.queue_group,
        waiting.callback_id, waiting.replay_id, status::varchar(15), attempts, waiting.attempts_before, waiting.settled_before,
        false, redelivery::varchar(12), reason, NULL::timestamptz, waiting.expires_at, waiting.server_started_at, settled_at,
        NULL::timestamptz, NULL::uuid, NULL::timestamptz, waiting.receive_count, started_at, duration_ms, status_code,
        NULL::smallint
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("delivery", "0011_old_broker"), ("subscriptions", "0015_priorities")]

    operations = [
        migrations.RunSQL(
            COLUMN,
            migrations.RunSQL.noop,
            state_operations=[
                migrations.AddField(
                    "delivery",
                    "priority",
                    models.SmallIntegerField(
                        help_text="While it waits: the priority of its message, if its subscriber sends by priority.",
                        null=True,
                    ),
                )
            ],
        )
    ]
