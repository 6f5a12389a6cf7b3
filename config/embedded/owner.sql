-- Creates Inturn's role, and makes it the owner of every object in the database. An empty line ends
-- a statement.
DO $$
BEGIN
    CREATE ROLE inturn_owner;
EXCEPTION WHEN duplicate_object THEN
    NULL;
END
$$;

-- By default each connection computes 4,096 hashes, 3 ms of processor time, which protect passwords
-- chosen by people. This password is random. PostgreSQL before 16 has no such setting.
DO $$
BEGIN
    PERFORM set_config('scram_iterations', '1', false);
EXCEPTION WHEN undefined_object THEN
    NULL;
END
$$;

-- The role may create databases, for tests, and run checkpoints, which end the bench's rounds.
ALTER ROLE inturn_owner LOGIN NOSUPERUSER CREATEDB PASSWORD '<password>';

GRANT pg_checkpoint TO inturn_owner;

ALTER DATABASE inturn OWNER TO inturn_owner;

-- Earlier versions connected as the superuser (oid 10 in every installation), which owns their
-- objects. Members of an extension stay, and so do objects that follow their table: indexes and the
-- sequences of columns.
DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT format('ALTER SCHEMA %I OWNER TO inturn_owner', nspname)
        FROM pg_namespace
        WHERE nspowner = 10 AND nspname !~ '^pg_' AND nspname <> 'information_schema'
        UNION ALL
        SELECT format('ALTER TABLE %s OWNER TO inturn_owner', oid::regclass)
        FROM pg_class
        WHERE relowner = 10 AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND oid >= 16384
            AND NOT EXISTS (
                SELECT FROM pg_depend
                WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid
                    AND deptype IN ('a', 'i', 'e')
            )
            AND relnamespace <> 'pg_toast'::regnamespace
        UNION ALL
        SELECT format('ALTER ROUTINE %s OWNER TO inturn_owner', oid::regprocedure)
        FROM pg_proc WHERE proowner = 10 AND oid >= 16384
            AND NOT EXISTS (
                SELECT FROM pg_depend
                WHERE classid = 'pg_proc'::regclass AND objid = pg_proc.oid AND deptype = 'e'
            )
        UNION ALL
        SELECT format('ALTER TYPE %s OWNER TO inturn_owner', oid::regtype)
        FROM pg_type WHERE typowner = 10 AND oid >= 16384 AND typtype IN ('c', 'd', 'e', 'r')
            AND NOT EXISTS (
                SELECT FROM pg_depend
                WHERE classid = 'pg_type'::regclass AND objid = pg_type.oid
                    AND deptype IN ('i', 'e')
            )
    LOOP
        EXECUTE statement;
    END LOOP;
END
$$;

-- Nobody connects as the superuser any more.
ALTER ROLE inturn PASSWORD NULL;
