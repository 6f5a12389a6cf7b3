"""Triggers that record changes of the configuration and of scripts; functions and views of it."""

from pathlib import Path

from django.db import migrations

# By `changed_in` senders read the rows that changed since their last read.
NOTED = ["policy", "scriptlibrary", "signingsecret", "subscriber", "subscription"]
# The configuration that publishing caches. A key's last use is no change.
REMEMBERED = {
    "apikey": "INSERT OR DELETE OR UPDATE OF hash, scope, publisher_id, expires_at, revoked_at",
    "eventtype": "INSERT OR DELETE OR UPDATE",
    "publisher": "INSERT OR DELETE OR UPDATE",
    "publisher_event_types": "INSERT OR DELETE OR UPDATE",
    "subscriber": "INSERT OR DELETE OR UPDATE",
    "subscription": "INSERT OR DELETE OR UPDATE",
}


def note_change(table: str) -> str:
    return (
        f"CREATE TRIGGER note_change BEFORE INSERT OR UPDATE ON subscriptions_{table} "
        "FOR EACH ROW EXECUTE FUNCTION subscriptions_note_change()"
    )


def note_transaction(table: str, events: str) -> str:
    return (
        f"CREATE TRIGGER note_transaction AFTER {events} ON subscriptions_{table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION subscriptions_note_transaction()"
    )


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0002_built_in")]

    operations = [
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text()),
        *(migrations.RunSQL(note_change(table)) for table in NOTED),
        *(migrations.RunSQL(note_transaction(table, events)) for table, events in REMEMBERED.items()),
    ]
