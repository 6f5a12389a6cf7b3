-- Removes mailbox rates shown by no figure any more. Leans on mailbox_rate_by_time.
DELETE FROM delivery_mailboxrate WHERE at < now() - interval '1 hour'
