"""Schedules of the pipeline in the console: how often each step runs, changed by administrators."""

from typing import Any

from django.contrib import admin
from django.core.validators import MinValueValidator
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString

from delivery.console.pipeline.page import PURPOSES, pace_in_words
from delivery.console.shared.labels import label
from delivery.console.shared.moment_field import moment_field
from delivery.console.shared.recorded_admin import RecordedAdmin
from delivery.console.shared.times import due
from delivery.models import PipelineSchedule, Step


@admin.register(PipelineSchedule)
class PipelineScheduleAdmin(RecordedAdmin):
    empty_text = "The schedules of export, rollup and verify are created with the database."
    list_display = ["name", "does", "shown_pace", "is_running", "upcoming"]
    fields = ["every_minutes", "is_on", "next_at"]
    sortable_by = ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: PipelineSchedule | None = None
    ) -> bool:
        return False

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "next_at":
            return moment_field(
                "Next at (UTC)", help_text="The next run; a time in the past means now."
            )
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name == "every_minutes":
            field.label = "Interval (minutes)"
            field.validators.append(MinValueValidator(1))
        return field

    @admin.display(description="step")
    def name(self, row: PipelineSchedule) -> str:
        return row.get_step_display()

    @admin.display(description="action")
    def does(self, row: PipelineSchedule) -> str:
        return PURPOSES[Step(row.step)]

    @admin.display(description="interval")
    def shown_pace(self, row: PipelineSchedule) -> str:
        return pace_in_words(row.every_minutes)

    @admin.display(description="state")
    def is_running(self, row: PipelineSchedule) -> SafeString:
        return label("on", tone="good") if row.is_on else label("off", tone="neutral")

    @admin.display(description="next")
    def upcoming(self, row: PipelineSchedule) -> SafeString | str:
        return due(row.next_at, now=timezone.now()) if row.is_on else "–"
