-- The senders at work in the whole installation, by the process id of their connection.
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'inturn sender %%'
