-- How far the projection of sessions is: a gateway reads the open turns after that position from the log.
grant select (name, position) on projection_checkpoints to antiphon_gateway;
