-- Deleted messages of a session: every read of its events leaves out their texts.
create index events_deleted_message_idx on events (workspace, stream_id) where type = 'ChatMessageDeleted';
