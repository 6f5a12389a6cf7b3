-- A time that the archive has not passed, whatever the database's own clock says.
CREATE FUNCTION delivery_clock() RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    RETURN greatest(
        clock_timestamp(),
        (SELECT until FROM delivery_archived WHERE id = 1),
        (SELECT until FROM delivery_archivechunk WHERE kind = 'EXPORT' AND state <> 'DONE')
    );
END
$$;
