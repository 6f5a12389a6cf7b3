"""What happens gets a time that the archive has not passed: `delivery_clock`, whatever the database's own clock says."""

import delivery.models.moment
from django.db import migrations, models

CLOCK = """
CREATE FUNCTION delivery_clock() RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    RETURN greatest(
        clock_timestamp(),
        (SELECT until FROM delivery_archived WHERE id = 1),
        (SELECT until FROM delivery_archivechunk WHERE kind = 'EXPORT' AND state <> 'DONE')
    );
END
$$;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('delivery', '0018_bodies_of_huge_numbers'),
    ]

    operations = [
        migrations.RunSQL(CLOCK, 'DROP FUNCTION delivery_clock()'),
        migrations.AlterField(
            model_name='journalentry',
            name='at',
            field=models.DateTimeField(db_default=delivery.models.moment.ArchiveClock()),
        ),
        migrations.AlterField(
            model_name='message',
            name='published_at',
            field=models.DateTimeField(db_default=delivery.models.moment.ArchiveClock()),
        ),
    ]
