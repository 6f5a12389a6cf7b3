-- Selects the journal entries to archive: recorded in an interval, in a range of ids. Leans on
-- journal_by_time.
SELECT
    entry.id, entry.at, entry.kind, entry.text, entry.actor, entry.message_id, entry.delivery_id,
    -- Few need this look-up.
    coalesce(
        entry.subscription_id,
        (SELECT subscription_id FROM delivery_delivery WHERE id = entry.delivery_id)
    ) AS subscription_id,
    entry.lane_id, lane.subscriber_id
FROM delivery_journalentry entry
LEFT JOIN delivery_lane lane ON lane.id = entry.lane_id
WHERE entry.at >= %(since)s AND entry.at < %(until)s AND entry.id >= %(first)s
    AND entry.id < %(last)s
