"""Runs of the data pipeline, and their schedules."""

from django.db import models
from django.db.models import Q

from delivery.models.moment import Clock


class Step(models.TextChoices):
    """The steps of the pipeline.

    EXPORT also compacts; REPLAY selects the messages of a replay; COMPARE reads another broker's
    log.
    """

    EXPORT = "EXPORT", "export"
    ROLLUP = "ROLLUP", "rollup"
    VERIFY = "VERIFY", "verify"
    REPLAY = "REPLAY", "replay"
    REPORT = "REPORT", "report"
    EFFECT = "EFFECT", "effect"
    COMPARE = "COMPARE", "compare"


# A run of these processes all new rows: a second run at the same time would repeat the work.
SOLE_STEPS = (Step.EXPORT, Step.ROLLUP, Step.VERIFY)


class RunState(models.TextChoices):
    WAITING = "WAITING"
    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


RUN_OPEN = (RunState.WAITING, RunState.RUNNING)
RUN_ENDED = (RunState.DONE, RunState.FAILED, RunState.CANCELLED)


class PipelineRun(models.Model):
    """A run of a step: `done` of `count` rows, and the current activity in words (`doing`).

    The executing process holds the advisory lock `run_lock(id)` on a separate connection: a RUNNING
    run without the lock was killed. `result` is the step's result (see each step), `error` the
    reason of a failure, for the person who requested the run.
    """

    step = models.CharField(max_length=7, choices=Step)
    state = models.CharField(max_length=9, choices=RunState, default=RunState.WAITING)
    options = models.JSONField(default=dict)
    asked_by = models.CharField(
        max_length=200, blank=True, default="", help_text="Empty: the schedule."
    )
    asked_at = models.DateTimeField(db_default=Clock())
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    is_stopping = models.BooleanField(
        default=False, db_default=False, help_text="A person wants it to stop."
    )
    doing = models.CharField(max_length=200, blank=True, default="")
    done = models.BigIntegerField(default=0)
    count = models.BigIntegerField(null=True)
    result = models.JSONField(default=dict)
    error = models.TextField(blank=True, default="")
    log = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["-id"]
        permissions = [("make_report", "Can make reports of the history")]
        constraints = [
            models.CheckConstraint(
                name="pipeline_run_ended",
                condition=Q(state__in=["WAITING", "RUNNING"]) ^ Q(ended_at__isnull=False),
            ),
            models.UniqueConstraint(
                name="pipeline_run_sole",
                fields=["step"],
                condition=Q(
                    state__in=["WAITING", "RUNNING"], step__in=["EXPORT", "ROLLUP", "VERIFY"]
                ),
            ),
        ]
        indexes = [
            models.Index(
                fields=["id"],
                name="pipeline_run_open",
                condition=Q(state__in=["WAITING", "RUNNING"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_step_display()} {self.pk}"

    @property
    def seconds(self) -> float | None:
        """The duration in seconds; None while it has not ended."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.started_at).total_seconds()


class PipelineSchedule(models.Model):
    """The schedule of a step: the interval in minutes."""

    step = models.CharField(max_length=7, choices=Step, primary_key=True)
    every_minutes = models.PositiveIntegerField()
    is_on = models.BooleanField("on", default=True)
    next_at = models.DateTimeField(db_default=Clock())

    class Meta:
        ordering = ["step"]
        constraints = [
            models.CheckConstraint(name="schedule_has_a_pace", condition=Q(every_minutes__gte=1)),
        ]

    def __str__(self) -> str:
        return f"{self.get_step_display()} every {self.every_minutes} minutes"


class Finding(models.Model):
    """A violation found by a VERIFY run, with the rows involved.

    They are named by id, since they may be in the archive alone.
    """

    run = models.ForeignKey(PipelineRun, on_delete=models.CASCADE, related_name="findings")
    kind = models.CharField(max_length=20)
    text = models.TextField()
    message_id = models.BigIntegerField(null=True)
    delivery_id = models.BigIntegerField(null=True)
    other_delivery_id = models.BigIntegerField(null=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.text
