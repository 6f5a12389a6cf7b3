"""The runs of the data pipeline: requested, run one at a time, and watched.

The steps themselves are in `delivery.history`.

    requested ─▶ WAITING ─▶ RUNNING ─┬▶ DONE
                  ▲ │          │     ├▶ FAILED     it failed, or its process was killed (`cleanup`)
                  │ └─ stop ───┼─────┴▶ CANCELLED  a person stopped it
                  └────────────┘ Inturn stopped meanwhile: the run begins again with the next start

Every change of a run's state is a conditional UPDATE in `runs`; the loser of a race sees it from
the row count. The process of a RUNNING run holds an advisory lock: a RUNNING run without a lock was
killed. Steps that run only once at a time in the whole installation (export, rollup, verify) are
protected twice: by a unique index, which refuses a second open run, and by a lock on the connection
of the step's commits, so a process presumed dead cannot commit alongside the successor. Nothing
here imports Spark or Arrow before a run begins: the cluster waiting for runs stays small.
"""

from delivery.pipeline.request import TooManyRunsError, request_distinct_run, request_run
from delivery.pipeline.runs import RunOpenError, stop_run

__all__ = ["RunOpenError", "TooManyRunsError", "request_distinct_run", "request_run", "stop_run"]
