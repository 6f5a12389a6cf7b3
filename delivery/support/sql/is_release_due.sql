-- Whether a hold of the installation, a subscriber or a subscription has expired, or a lane catches
-- up, which may be over.
SELECT EXISTS (
    SELECT FROM subscriptions_installation WHERE id = 1 AND held_until <= statement_timestamp()
)
OR EXISTS (SELECT FROM subscriptions_subscriber WHERE held_until <= statement_timestamp())
OR EXISTS (SELECT FROM subscriptions_subscription WHERE held_until <= statement_timestamp())
OR EXISTS (SELECT FROM delivery_lane WHERE catch_up_to IS NOT NULL)
