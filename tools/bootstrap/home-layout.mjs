import { join } from 'node:path';
import { readJson } from './files.mjs';

/** Where things lie in a home (`ANTIPHON_HOME`). Everything in it belongs to one stack. */
export const homeLayout = (home) => ({
  home,
  stackFile: join(home, 'stack.json'),
  lockFile: join(home, 'run', 'supervisor.lock'),
  /** Every process that the supervisor started, so that whoever comes after a kill -9 finds them. */
  childrenFile: join(home, 'run', 'children.json'),
  portsFile: join(home, 'run', 'ports.json'),
  postgresFile: join(home, 'postgres.json'),
  credentials: join(home, 'credentials'),
  adminKeyFile: join(home, 'credentials', 'admin.key'),
  databaseUrlFile: join(home, 'credentials', 'database.url'),
  natsUsersFile: join(home, 'credentials', 'nats-users.json'),
  secretsFile: join(home, 'credentials', 'secrets.json'),
  logs: join(home, 'logs'),
  run: join(home, 'run'),
  postgres: join(home, 'postgres'),
  nats: join(home, 'nats'),
  temporal: join(home, 'temporal'),
});

/** Major version of the PostgreSQL that made this home's data, null when there is none yet: no other one can open it. */
export const postgresMajorOf = (home) => readJson(homeLayout(home).postgresFile)?.major ?? null;
