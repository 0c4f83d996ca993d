-- Unified diff of the files that a call would change, for the person who decides; null for other calls.
alter table agent_approvals add column preview text;
