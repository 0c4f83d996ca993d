-- Arguments that an approver gave a call in the place of the requested ones, and their digest; null for a call as requested.
alter table agent_approvals add column edited jsonb;
