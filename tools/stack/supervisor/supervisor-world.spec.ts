import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from '@jest/globals';
import pg from 'pg';
import { SERVICES } from '@antiphon/contracts/messaging';
import { identify } from '@antiphon/bootstrap/processes';
import type { ProcessIdentity } from '@antiphon/bootstrap/types';
import { projectRoot } from '@antiphon/bootstrap/project';
import { SUPERVISED_HOME } from '@antiphon/bootstrap/stop-stack';
import { recordHome } from '@antiphon/bootstrap/test-run';
import { down, up } from '../index.js';
import type { RunningStack, StackJson, UpOptions } from '../index.js';

export const FAKE = join(projectRoot, 'tools/stack/fixtures/fake-service.mjs');
export const FAKES = Object.fromEntries(SERVICES.map((name) => [name, FAKE]));

export const environment = (more: Record<string, string> = {}): NodeJS.ProcessEnv => ({
  PATH: process.env['PATH'],
  HOME: process.env['HOME'],
  ...(process.env['ANTIPHON_CACHE'] ? { ANTIPHON_CACHE: process.env['ANTIPHON_CACHE'] } : {}),
  ...more,
});

/** Real engines of its own, with small programs in place of the services. */
export const start = (home: string, options: UpOptions = {}): Promise<RunningStack> =>
  up({ home, cwd: home, env: environment(), usualPorts: false, mainFiles: FAKES, ...options });

export const allPids = (stack: StackJson): number[] => [
  stack.supervisor.pid,
  ...Object.values(stack.services).flatMap((entries) => entries.map(({ pid }) => pid ?? 0)),
  ...Object.values(stack.engines).map(({ pid }) => pid ?? 0),
];
export const identities = (stack: StackJson): ProcessIdentity[] =>
  allPids(stack).flatMap((pid) => (pid === 0 ? [] : (identify(pid) ?? [])));

/** Every process that bears the mark of a home, written down or not. */
export const marked = (home: string): string[] =>
  readdirSync('/proc').filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`${SUPERVISED_HOME}=${home}\0`);
    } catch {
      return false; // no process, or one that has just ended
    }
  });

export const makeHome = (): string => {
  const home = mkdtempSync(join(tmpdir(), 'antiphon supervisor '));
  recordHome(home, 'stack');
  return home;
};

/** Returns a function that makes homes, which are stopped and removed after the tests. */
export const useHomes = (): (() => string) => {
  const homes: string[] = [];
  afterAll(async () => {
    for (const home of homes) {
      await down({ home });
      rmSync(home, { recursive: true, force: true });
    }
  }, 60_000);
  return () => {
    const home = makeHome();
    homes.push(home);
    return home;
  };
};

export const query = async (url: string, sql: string): Promise<Record<string, unknown>[]> => {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
};
