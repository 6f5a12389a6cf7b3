-- The headers of `message` if sending needs them, NULL otherwise: a subscription `forwarding` of
-- its event type of which `it` is true forwards some, or the message was published with `ReplyTo`,
-- is a reply, or belongs to a trace.
CASE WHEN message.headers ?| '{replyto,inturn-replied-message,traceparent}' OR EXISTS (
    SELECT FROM subscriptions_subscription forwarding
    WHERE forwarding.event_type_id = message.event_type_id
        AND {it}
        AND forwarding.forward_headers <> '[]'
) THEN message.headers END
