-- How each of these subscriptions stands, and each subscription of these subscribers, of one mode
-- if a mode is named: by the view delivery_subscriptionstanding. With the object that holds it
-- (`holder`), until when, and the time of the decision by the journal; and the publication of the
-- subscription's oldest open delivery. LATERAL with a LIMIT looks up each subscription by itself.
-- It is prepared, so it names the columns: a change of `*` would be an error.
SELECT
    standing.subscription_id, standing.subscriber_id, standing.header_filter_string,
    standing.filter_identity, standing.state, standing.cause, standing.since, standing.reason,
    standing.next_try_at, standing.delivery_id, decision.holder, decision.held_until,
    decided.at AS decided_at, oldest.published_at AS oldest_at
FROM (
    SELECT id FROM unnest(%(subscriptions)s::bigint[]) AS named (id)
    UNION ALL
    SELECT id
    FROM subscriptions_subscription
    WHERE subscriber_id = ANY (%(subscribers)s::bigint[])
        AND (%(mode)s::text IS NULL OR mode = %(mode)s)
) AS wanted
CROSS JOIN LATERAL (
    SELECT * FROM delivery_subscriptionstanding WHERE subscription_id = wanted.id LIMIT 1
) AS standing
LEFT JOIN LATERAL (
    SELECT
        subscription.id AS subscription_id, 'subscription' AS holder, subscription.held_until,
        NULL::bigint AS lane_id
    FROM subscriptions_subscription subscription
    WHERE subscription.id = standing.subscription_id
        AND (subscription.status = standing.cause OR standing.cause IN ('SHADOW', 'CANCELLING'))
    UNION ALL
    SELECT NULL, 'subscriber', subscriber.held_until, lane.id
    FROM subscriptions_subscriber subscriber
    LEFT JOIN delivery_lane lane ON lane.subscriber_id = subscriber.id
    WHERE subscriber.id = standing.subscriber_id AND subscriber.status = standing.cause
    UNION ALL
    SELECT NULL, 'installation', held_until, NULL
    FROM subscriptions_installation
    WHERE id = 1 AND sending = standing.cause
    LIMIT 1
) AS decision ON standing.state IN ('HELD', 'INACTIVE')
LEFT JOIN LATERAL (
    (
        SELECT at
        FROM delivery_journalentry
        WHERE subscription_id = decision.subscription_id
            AND kind IN ('HELD', 'SHADOW', 'DEACTIVATED')
        ORDER BY subscription_id, id DESC
        LIMIT 1
    )
    UNION ALL
    (
        SELECT at
        FROM delivery_journalentry
        WHERE lane_id = decision.lane_id AND kind IN ('HELD', 'DEACTIVATED')
        ORDER BY lane_id, id DESC
        LIMIT 1
    )
) AS decided ON true
LEFT JOIN LATERAL (
    SELECT published_at FROM delivery_message WHERE id = standing.oldest_id >> 20 LIMIT 1
) AS oldest ON true
