from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

SHARDS = 512


def make_shards(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    shard = apps.get_model("delivery", "Shard")
    shard.objects.bulk_create(shard(id=number) for number in range(SHARDS))


class Migration(migrations.Migration):
    dependencies = [("delivery", "0021_deliveries_without_two_constraints")]

    operations = [
        migrations.CreateModel(
            name="Shard",
            fields=[
                ("id", models.SmallIntegerField(primary_key=True, serialize=False)),
                ("epoch", models.BigIntegerField(default=0)),
                ("owner", models.UUIDField(null=True)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("id__gte", 0), ("id__lt", SHARDS)), name="shard_exists"
                    )
                ],
            },
        ),
        # A lane that sends says so by its run.
        migrations.RunSQL(
            "UPDATE delivery_lane SET state = 'IDLE' WHERE state = 'SENDING'", migrations.RunSQL.noop
        ),
        migrations.RunPython(make_shards, migrations.RunPython.noop),
    ]
