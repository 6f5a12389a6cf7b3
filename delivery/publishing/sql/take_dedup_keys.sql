-- Takes the identifying keys of just stored messages for a subscription; other transactions wait
-- for them until the commit. All transactions take them in a fixed order, so two never deadlock. A
-- key taken before stays with the earlier delivery, and is locked.
INSERT INTO delivery_dedupkey AS known (subscription_id, key, delivery_id)
SELECT DISTINCT ON (keyed.subscription_id, keyed.key) keyed.subscription_id, keyed.key, delivery.id
FROM unnest(
    %(message)s::bigint[], %(subscription)s::bigint[], %(key)s::bytea[]
) AS keyed (message_id, subscription_id, key)
JOIN delivery_waiting delivery
    ON delivery.id BETWEEN keyed.message_id << 20 AND keyed.message_id << 20 | 1048575
    AND delivery.subscription_id = keyed.subscription_id
ORDER BY keyed.subscription_id, keyed.key, delivery.id
ON CONFLICT (subscription_id, key) DO UPDATE SET delivery_id = known.delivery_id
