-- Whether a hold has expired: of the installation, of a subscriber or of a subscription.
SELECT EXISTS (
    SELECT FROM subscriptions_installation WHERE id = 1 AND held_until <= statement_timestamp()
)
OR EXISTS (SELECT FROM subscriptions_subscriber WHERE held_until <= statement_timestamp())
OR EXISTS (SELECT FROM subscriptions_subscription WHERE held_until <= statement_timestamp())
