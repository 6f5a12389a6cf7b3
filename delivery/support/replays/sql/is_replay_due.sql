-- Whether a replay has its next batch due, or a replay ended before `until` still has items.
SELECT EXISTS (
    SELECT FROM delivery_replay
    WHERE state = 'RUNNING' AND due_at <= %(now)s::timestamptz
) OR EXISTS (
    SELECT FROM delivery_replay replay
    WHERE replay.ended_at < %(until)s::timestamptz
        AND EXISTS (SELECT FROM delivery_replayitem WHERE replay_id = replay.id)
)
