-- The gateway asks the agent service for open sessions. It reads the log, and no table of another service.
revoke select on agent_sessions from antiphon_gateway;
revoke select (name, position) on projection_checkpoints from antiphon_gateway;
