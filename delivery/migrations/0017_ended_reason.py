"""Why a person ended a settlement: resubmitted or decided, by whom, in which job."""

from django.db import migrations, models

REMEMBER = """
CREATE OR REPLACE FUNCTION delivery_remember_settlement() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    amended boolean := NEW.settled_at IS NOT NULL AND NEW.settled_before = OLD.settled_before;
BEGIN
    INSERT INTO delivery_earliersettlement (
        delivery_id, settled_at, status, attempts, attempts_before, settled_before, redelivery, reason, receive_count,
        message_id, subscription_id, queue_group, callback_id, replay_id, is_amended, ended_by, ended_at, ended_reason
    )
    VALUES (
        OLD.id, OLD.settled_at, OLD.status, OLD.attempts, OLD.attempts_before, OLD.settled_before, OLD.redelivery,
        OLD.reason, OLD.receive_count, OLD.message_id, OLD.subscription_id, OLD.queue_group, OLD.callback_id, OLD.replay_id,
        amended, pg_current_xact_id()::text, clock_timestamp(), CASE WHEN amended THEN '' ELSE NEW.reason END
    );
    RETURN NULL;
END
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("delivery", "0016_receivers")]

    operations = [
        migrations.AddField(
            "earliersettlement", "ended_reason", models.TextField(
                blank=True, db_default="", default="", help_text="Who ended it, and by which job, as in `reason`; empty in older rows."
            )
        ),
        migrations.RunSQL(REMEMBER, migrations.RunSQL.noop),
    ]
