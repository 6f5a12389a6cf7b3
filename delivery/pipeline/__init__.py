"""The runs of the data pipeline: asked for, done one at a time by whoever may, and watched. The steps are `delivery.history`.

    asked for ─▶ WAITING ─▶ RUNNING ─┬▶ DONE
                  ▲ │          │     ├▶ FAILED      the step could not, or whoever ran it was killed (`tidying`)
                  │ └─ stop ───┼─────┴▶ CANCELLED   a person stopped it
                  └────────────┘ Inturn stopped meanwhile: it begins again with the next start

Every change of a run's state is a conditional UPDATE in `runs`; who loses the race learns it from the row count. A run that is
RUNNING is held by an advisory lock of the process that runs it: one without was killed. What may run once at a time in the whole
installation (export, rollup, verify) is held twice: by a unique index, which refuses a second open run, and by a lock on the
very connection that the step commits by, so that no process that was taken for dead can commit beside its successor.
Nothing here imports Spark or Arrow before a run begins: the cluster that waits for runs stays small.
"""

from delivery.pipeline.request import request_run
from delivery.pipeline.runs import RunOpenError, stop

__all__ = ["RunOpenError", "request_run", "stop"]
