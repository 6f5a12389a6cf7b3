"""Deliveries without foreign keys: what refers to a subscription holds it by itself, and a trigger protects it."""

import django.db.models.deletion
from django.db import migrations, models


PROTECT = """
CREATE FUNCTION delivery_protect_subscription() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Who inserts a delivery holds the subscription. So its delivery is committed by now, and seen here.
    IF EXISTS (SELECT FROM delivery_delivery WHERE subscription_id = OLD.id) THEN
        RAISE foreign_key_violation USING MESSAGE = format('subscription %s has deliveries', OLD.id);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER delivery_protect_subscription AFTER DELETE ON subscriptions_subscription
FOR EACH ROW EXECUTE FUNCTION delivery_protect_subscription();
"""
EXPOSE = """
DROP TRIGGER delivery_protect_subscription ON subscriptions_subscription;
DROP FUNCTION delivery_protect_subscription();
"""


class Migration(migrations.Migration):

    dependencies = [
        ('delivery', '0022_shards'),
        ('subscriptions', '0011_changes_seen_by_publishing'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='delivery',
            name='delivery_of_callback',
        ),
        migrations.AlterField(
            model_name='delivery',
            name='callback',
            field=models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='delivery.callback'),
        ),
        migrations.AlterField(
            model_name='delivery',
            name='replay',
            field=models.ForeignKey(db_constraint=False, db_index=False, help_text="What made it, instead of its message's publication.", null=True, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='delivery.replay'),
        ),
        migrations.AlterField(
            model_name='delivery',
            name='subscription',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='subscriptions.subscription'),
        ),
        migrations.RunSQL(PROTECT, EXPOSE),
    ]
