-- Triggers of the migrated database, by table.
-- Written by libs/platform/database/functions.int.spec.ts with ANTIPHON_WRITE_LISTS=1.

CREATE TRIGGER archived_streams_keep BEFORE UPDATE OR TRUNCATE ON archived_streams FOR EACH STATEMENT EXECUTE FUNCTION antiphon_refuse_change();

CREATE TRIGGER events_append_only BEFORE UPDATE OR TRUNCATE ON events FOR EACH STATEMENT EXECUTE FUNCTION antiphon_refuse_change();

CREATE TRIGGER events_leave_archived AFTER DELETE ON events REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION antiphon_check_leaving();

CREATE TRIGGER file_blobs_check_digest BEFORE INSERT OR UPDATE OF body, digest, size ON file_blobs FOR EACH ROW EXECUTE FUNCTION antiphon_check_digest();

CREATE TRIGGER file_blobs_mark_binary BEFORE INSERT OR UPDATE OF body ON file_blobs FOR EACH ROW EXECUTE FUNCTION antiphon_mark_binary();

CREATE TRIGGER stream_heads_keep BEFORE TRUNCATE ON stream_heads FOR EACH STATEMENT EXECUTE FUNCTION antiphon_refuse_change();
