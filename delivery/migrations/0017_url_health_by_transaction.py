from django.db import migrations, models

TRIGGER = (
    "CREATE TRIGGER note_change BEFORE INSERT OR UPDATE OF state ON delivery_urlhealth "
    "FOR EACH ROW EXECUTE FUNCTION subscriptions_note_change()"
)


class Migration(migrations.Migration):
    dependencies = [
        ("delivery", "0016_every_settlement"),
        ("subscriptions", "0008_changes_by_transaction"),
    ]

    operations = [
        migrations.AddField("urlhealth", "changed_in", models.BigIntegerField(editable=False, null=True)),
        migrations.RunSQL(TRIGGER, "DROP TRIGGER note_change ON delivery_urlhealth"),
        migrations.AddIndex("urlhealth", models.Index(fields=["changed_in"], name="url_health_changed")),
    ]
