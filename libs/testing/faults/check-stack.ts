import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { projectRoot } from '@antiphon/bootstrap/project';
import { ALL_WORKSPACES, createPool } from '@antiphon/database';
import { createLogReader } from '@antiphon/event-store';
import { sleep } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import type { TestStack } from '../engines/start-stack.js';
import type { LoggedFact } from '../load/check-commands.js';

/** Result of `antiphon audit --strict`, with all that it printed. */
export interface Audit {
  readonly ok: boolean;
  readonly output: string;
}

const CLI = fileURLToPath(new URL('apps/cli/bin/antiphon.mjs', `file://${projectRoot}/`));
const RETRY_MS = 2_000;
const PAGE = 5_000;
/** Categories whose events show how commands ended: runs, and the sessions that clients read. */
const CATEGORIES = ['session', 'run'];

/** Audits a stack that has no load. */
const auditStack = (stack: Pick<TestStack, 'home'>): Promise<Audit> =>
  new Promise((resolve) => {
    const env = { ...process.env, NODE_OPTIONS: '', ANTIPHON_HOME: stack.home };
    const options = { env, cwd: stack.home, maxBuffer: 64 * 1024 * 1024 };
    execFile(process.execPath, [CLI, 'audit', '--strict'], options, (error, stdout, stderr) =>
      resolve({ ok: error === null, output: error === null ? stdout : stdout + stderr }),
    );
  });

/**
 * Audits until the log holds. The last audit begins after `deadlineMs`, because settlements and
 * sweeps come after the last turn.
 */
export const auditUntilQuiet = async (
  stack: Pick<TestStack, 'home'>,
  deadlineMs = 120_000,
): Promise<Audit> => {
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    const isLast = performance.now() > deadline;
    const audit = await auditStack(stack);
    if (audit.ok || isLast) return audit;
    await sleep(RETRY_MS);
  }
};

/** Reads the events of a stack's log that show how commands ended, oldest first. */
export const readFacts = async ({ databaseUrl }: Pick<TestStack, 'databaseUrl'>): Promise<LoggedFact[]> => {
  const pool = createPool({
    url: databaseUrl,
    applicationName: 'antiphon-check',
    workspace: ALL_WORKSPACES,
    logger: silentLogger,
  });
  const log = createLogReader(pool);
  const facts: LoggedFact[] = [];
  try {
    for (let after = 0; ;) {
      const page = await log.readLog({ after, limit: PAGE, categories: CATEGORIES });
      facts.push(...page.map(({ streamId, type, data }) => ({ streamId, type, data })));
      if (page.length < PAGE) return facts;
      after = page.at(-1)?.position ?? after;
    }
  } finally {
    await pool.end();
  }
};
