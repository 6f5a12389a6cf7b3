-- Removes mailbox rates that no figure shows any more. Leans on mailbox_rate_by_time.
DELETE FROM delivery_mailboxrate WHERE at < now() - interval '1 hour'
