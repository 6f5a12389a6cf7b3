from django.db import migrations, models

# What publishing remembers. A key's last use is no change.
WATCHED = {
    "apikey": "INSERT OR DELETE OR UPDATE OF hash, scope, publisher_id, expires_at, revoked_at",
    "eventtype": "INSERT OR DELETE OR UPDATE",
    "publisher": "INSERT OR DELETE OR UPDATE",
    "publisher_event_types": "INSERT OR DELETE OR UPDATE",
    "subscriber": "INSERT OR DELETE OR UPDATE",
    "subscription": "INSERT OR DELETE OR UPDATE",
}

FUNCTION = """
CREATE FUNCTION subscriptions_note_transaction() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO subscriptions_configurationtransaction (id, changed_at)
    VALUES (pg_current_xact_id()::text::bigint, now())
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$
"""
TRIGGER = (
    "CREATE TRIGGER note_transaction AFTER {events} ON subscriptions_{table} "
    "FOR EACH STATEMENT EXECUTE FUNCTION subscriptions_note_transaction()"
)


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0010_matching_by_header_string")]

    operations = [
        migrations.CreateModel(
            name="ConfigurationTransaction",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("changed_at", models.DateTimeField()),
            ],
            options={"default_permissions": ()},
        ),
        migrations.RunSQL(FUNCTION, "DROP FUNCTION subscriptions_note_transaction()"),
        *(
            migrations.RunSQL(
                TRIGGER.format(events=events, table=table),
                f"DROP TRIGGER note_transaction ON subscriptions_{table}",
            )
            for table, events in WATCHED.items()
        ),
    ]
