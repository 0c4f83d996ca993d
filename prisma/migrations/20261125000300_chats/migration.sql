-- The agent service owns the facts of chats: a name, an agent and the session that holds the messages. Lists of chats are
-- read from the log by events_rare_type_idx, so that a chat is listed as soon as it is created.
insert into category_owners (category, service) values ('chat', 'agent') on conflict do nothing;
