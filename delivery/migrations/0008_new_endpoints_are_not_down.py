"""A new endpoint is not DOWN: the state of the one before says nothing about it."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("delivery", "0007_first_success_of_urls")]

    operations = [
        migrations.RunSQL(
            """
            CREATE FUNCTION delivery_forget_endpoint() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                DELETE FROM delivery_endpointhealth WHERE subscription_id = NEW.id;
                RETURN NULL;
            END
            $$;
            CREATE TRIGGER forget_endpoint AFTER UPDATE OF endpoint ON subscriptions_subscription
            FOR EACH ROW WHEN (OLD.endpoint IS DISTINCT FROM NEW.endpoint)
            EXECUTE FUNCTION delivery_forget_endpoint();
            """,
            """
            DROP TRIGGER forget_endpoint ON subscriptions_subscription;
            DROP FUNCTION delivery_forget_endpoint();
            """,
        ),
    ]
