from django.db import migrations, models
from django.db.models import Q

WATCHED = ["policy", "signingsecret", "subscriber", "subscription"]

FUNCTION = """
CREATE FUNCTION subscriptions_note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_in := pg_current_xact_id()::text::bigint;
    RETURN NEW;
END
$$
"""
TRIGGER = (
    "CREATE TRIGGER note_change BEFORE INSERT OR UPDATE ON subscriptions_{model} "
    "FOR EACH ROW EXECUTE FUNCTION subscriptions_note_change()"
)


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0007_filter_identity")]

    operations = [
        migrations.RemoveIndex("subscriber", "subscriber_changed"),
        migrations.RemoveIndex("subscription", "subscription_changed"),
        *(
            migrations.AddField(model, "changed_in", models.BigIntegerField(editable=False, null=True))
            for model in WATCHED
        ),
        migrations.RunSQL(FUNCTION, "DROP FUNCTION subscriptions_note_change()"),
        *(
            migrations.RunSQL(
                TRIGGER.format(model=model), f"DROP TRIGGER note_change ON subscriptions_{model}"
            )
            for model in WATCHED
        ),
        migrations.AddIndex("policy", models.Index(fields=["changed_in"], name="policy_changed")),
        migrations.AddIndex("signingsecret", models.Index(fields=["changed_in"], name="secret_changed")),
        migrations.AddIndex(
            "signingsecret",
            models.Index(
                fields=["expires_at"], name="secret_expiring", condition=Q(expires_at__isnull=False)
            ),
        ),
        migrations.AddIndex("subscriber", models.Index(fields=["changed_in"], name="subscriber_changed")),
        migrations.AddIndex("subscription", models.Index(fields=["changed_in"], name="subscription_changed")),
    ]
