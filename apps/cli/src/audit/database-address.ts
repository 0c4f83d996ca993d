import { existsSync, readFileSync } from 'node:fs';
import { invalid } from '@antiphon/kernel';
import { readStack } from '@antiphon/stack';
import { homeOf } from '../connection/gateway-address.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** Where the log is: `ANTIPHON_DATABASE_URL`, else the database of the stack that runs in this home. */
export const findDatabase = (env: Environment, cwd: string): string => {
  const given = env['ANTIPHON_DATABASE_URL'];
  if (given) return given;
  const home = homeOf(env, cwd);
  const file = readStack(home)?.credentials.databaseUrlFile;
  if (file !== undefined && existsSync(file)) return readFileSync(file, 'utf8').trim();
  throw invalid(
    'CLI.USAGE',
    `no stack runs in ${home}. What to do: start it with \`npm start\`, or name the database with ANTIPHON_DATABASE_URL`,
  );
};
