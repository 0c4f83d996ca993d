-- The agent service owns the facts of providers that are connected at run time. A workspace has one event stream for all
-- of its providers. Their keys stay in provider_credentials, which commits with the fact.
insert into category_owners (category, service) values ('provider', 'agent') on conflict do nothing;
