-- The current time, or the end of the archive if that is later, as after the database's clock was
-- set back.
CREATE FUNCTION delivery_clock() RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    RETURN greatest(
        clock_timestamp(),
        (SELECT until FROM delivery_archived WHERE id = 1),
        (SELECT until FROM delivery_archivechunk WHERE kind = 'EXPORT' AND state <> 'DONE')
    );
END
$$;
