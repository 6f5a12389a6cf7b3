"""The ledger of the archive: intervals, and current files.

Only `delivery.history` writes it.
"""

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from delivery.states import Status


class ChunkKind(models.TextChoices):
    EXPORT = "EXPORT"
    COMPACTION = "COMPACTION"


class ChunkState(models.TextChoices):
    """WRITING: nothing is visible yet.

    MOVING: verified, files are being moved. DONE: they count.
    """

    WRITING = "WRITING"
    MOVING = "MOVING"
    DONE = "DONE"


class ArchiveChunk(models.Model):
    """The result of a transaction of the export: every event from `since` to before `until`.

    `snapshot` is the snapshot it saw. A COMPACTION rewrites existing files; the interval is empty.
    """

    kind = models.CharField(max_length=10, choices=ChunkKind, default=ChunkKind.EXPORT)
    state = models.CharField(max_length=7, choices=ChunkState, default=ChunkState.WRITING)
    run_id = models.BigIntegerField(help_text="The pipeline run that wrote it.")
    since = models.DateTimeField()
    until = models.DateTimeField()
    snapshot = models.TextField(
        blank=True, default="", help_text="PostgreSQL's pg_snapshot, once it is verified."
    )
    counts = models.JSONField(default=dict, help_text="Rows by table.")
    is_rolled_up = models.BooleanField(default=False, db_default=False)
    started_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                name="chunk_ended", condition=~Q(state="DONE") ^ Q(ended_at__isnull=False)
            ),
            models.CheckConstraint(
                name="chunk_is_a_piece_of_time", condition=Q(since__lte=F("until"))
            ),
            models.UniqueConstraint(
                fields=["kind"], condition=~Q(state="DONE"), name="chunk_one_under_way_of_a_kind"
            ),
        ]
        indexes = [
            # To find the export of a given settlement time.
            models.Index(
                fields=["-since"], name="chunk_of_a_time", condition=Q(kind="EXPORT", state="DONE")
            ),
        ]

    def __str__(self) -> str:
        return f"chunk {self.pk}"


class ArchiveFile(models.Model):
    """A Parquet file; `path` is relative to the archive.

    It counts once the chunk is DONE, until the replacement's chunk is.
    """

    chunk = models.ForeignKey(ArchiveChunk, on_delete=models.PROTECT, related_name="files")
    replaced_by = models.ForeignKey(
        ArchiveChunk, on_delete=models.PROTECT, null=True, related_name="replaces", db_index=False
    )
    table = models.CharField(max_length=20)
    day = models.DateField()
    path = models.CharField(max_length=500, unique=True)
    staged = models.CharField(
        max_length=500, help_text="Where it was written, before it was moved into place."
    )
    rows = models.BigIntegerField()
    bytes = models.BigIntegerField()
    first_id = models.BigIntegerField(
        help_text="Of messages, deliveries and entries their own; of attempts the deliveries'."
    )
    last_id = models.BigIntegerField()
    sha256 = models.CharField(
        max_length=64,
        default="",
        db_default="",
        help_text="Of its bytes; empty: an early export kept no checksums.",
    )
    checksum = models.CharField(
        max_length=16,
        default="",
        db_default="",
        help_text="Of its rows, in hexadecimal: see `delivery.history.archive.fingerprint`.",
    )

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["table", "day"], name="archive_file_by_day")]

    def __str__(self) -> str:
        return self.path


class ArchiveIdentity(models.Model):
    """One row: the UUID of the archive, which a file at the root has, too; null: it was given up.

    `measured_until` is the end of an earlier, abandoned archive. The archive's hours were measured
    from more rows than there are now, so the rollup leaves them as they are.
    """

    uuid = models.UUIDField(null=True)
    measured_until = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(name="archive_has_one_identity", condition=Q(pk=1))]

    def __str__(self) -> str:
        return f"archive {self.uuid}"


class EarlierSettlement(models.Model):
    """The earlier settlement of a delivery whose row was changed since.

    A person changed it, or an attempt ended late. A trigger of the table writes this row with the
    change, so settling itself costs nothing.

    A settlement ended by a person counts on its own: the row has every value for the archive, and
    the view `delivery_settlement` shows it along with current ones. An export takes it by
    `settled_at`, and it stays until the delivery is removed.

    After a late attempt it `is_amended`: the delivery is still settled, now with this attempt, and
    the archive needs only the newer settlement. If an export saw the older settlement, it has
    archived those attempts already. `ended_by`, the transaction (xid8) of the change, shows this
    for any snapshot.
    """

    delivery_id = models.BigIntegerField()
    settled_at = models.DateTimeField()
    status = models.CharField(max_length=15, choices=Status, default="")
    attempts = models.IntegerField()
    attempts_before = models.IntegerField(default=0)
    settled_before = models.IntegerField(default=0)
    redelivery = models.CharField(max_length=12, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    receive_count = models.IntegerField(default=0)
    message_id = models.BigIntegerField(default=0)
    subscription_id = models.BigIntegerField(default=0)
    queue_group = models.SmallIntegerField(null=True)
    callback_id = models.BigIntegerField(null=True)
    replay_id = models.BigIntegerField(null=True)
    is_amended = models.BooleanField(default=True)
    ended_by = models.TextField(help_text="PostgreSQL's xid8.")
    ended_at = models.DateTimeField()
    ended_reason = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="Who ended it, and by which job, as in `reason`; empty in older rows.",
    )

    class Meta:
        indexes = [
            models.Index(fields=["delivery_id"], name="earlier_settlement_of"),
            # The rows for an export's interval.
            models.Index(
                fields=["settled_at"], name="earlier_settlement_at", condition=Q(is_amended=False)
            ),
        ]

    def __str__(self) -> str:
        return f"delivery {self.delivery_id}, settled at {self.settled_at}"
