"""The archive has an identity and its files checksums; a pass of retention says what it kept."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('delivery', '0009_chat_secrets'),
    ]

    operations = [
        migrations.AddField(
            model_name='archivefile',
            name='checksum',
            field=models.CharField(db_default='', default='', help_text='Of its rows, in hexadecimal: see `delivery.history.archive.fingerprint`.', max_length=16),
        ),
        migrations.AddField(
            model_name='archivefile',
            name='sha256',
            field=models.CharField(db_default='', default='', help_text='Of its bytes; empty: an early export kept no checksums.', max_length=64),
        ),
        migrations.AddField(
            model_name='retentionrun',
            name='kept_because',
            field=models.TextField(db_default='', default='', help_text='Why archived messages stay: files of the archive that cannot be found.'),
        ),
        migrations.CreateModel(
            name='ArchiveIdentity',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uuid', models.UUIDField(null=True)),
                ('measured_until', models.DateTimeField(null=True)),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.CheckConstraint(condition=models.Q(('pk', 1)), name='archive_has_one_identity')],
            },
        ),
    ]
