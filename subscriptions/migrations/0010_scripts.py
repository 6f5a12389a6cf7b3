"""Scripts of subscriptions; a trigger counts their versions, whichever code writes a script."""

from django.db import migrations, models

FUNCTION = """
CREATE FUNCTION subscriptions_count_scripts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        NEW.script_version := (NEW.script <> '')::int;
    ELSE
        NEW.script_version := OLD.script_version + (NEW.script <> OLD.script)::int;
    END IF;
    RETURN NEW;
END
$$
"""
TRIGGER = """
CREATE TRIGGER count_scripts BEFORE INSERT OR UPDATE ON subscriptions_subscription
FOR EACH ROW EXECUTE FUNCTION subscriptions_count_scripts()
"""


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0009_publish_ids")]

    operations = [
        migrations.AddField(
            "subscription",
            "script",
            models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="TOPIC: turns each message into the request. SYNC with the endpoint webr://: makes the answer.",
            ),
        ),
        migrations.AddField(
            "subscription", "script_version", models.IntegerField(db_default=0, default=0, editable=False)
        ),
        migrations.AddConstraint(
            "subscription",
            models.CheckConstraint(
                condition=models.Q(("mode", "PUSH"), ("script", ""), _connector="OR"),
                name="subscription_pull_has_no_script",
                violation_error_message="A PULL subscription has no script: nothing is sent to it.",
            ),
        ),
        migrations.RunSQL(FUNCTION, "DROP FUNCTION subscriptions_count_scripts()"),
        migrations.RunSQL(TRIGGER, "DROP TRIGGER count_scripts ON subscriptions_subscription"),
    ]
