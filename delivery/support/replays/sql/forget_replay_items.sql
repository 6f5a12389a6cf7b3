-- Deletes items of replays ended long ago, up to a limit; returns their number. Their deliveries
-- still name the creating replay.
WITH forgotten AS (
    DELETE FROM delivery_replayitem
    WHERE (replay_id, message_id) IN (
        SELECT item.replay_id, item.message_id
        FROM delivery_replay replay
        JOIN delivery_replayitem item ON item.replay_id = replay.id
        WHERE replay.ended_at < %(until)s
        LIMIT %(limit)s
    )
    RETURNING 1
)
SELECT count(*) FROM forgotten
