import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { setTimeout as pause } from 'node:timers/promises';
import { projectRoot } from '@antiphon/bootstrap/project';
import type { TestStack } from '../engines/start-stack.js';

const CLI = fileURLToPath(new URL('apps/cli/bin/antiphon.mjs', `file://${projectRoot}/`));

/** What `antiphon audit --strict` says of a stack that nobody works with, and whether everything holds. */
export const auditStack = (stack: Pick<TestStack, 'home'>): Promise<{ ok: boolean; said: string }> =>
  new Promise((resolve) => {
    const env = { ...process.env, NODE_OPTIONS: '', ANTIPHON_HOME: stack.home };
    const options = { env, cwd: stack.home, maxBuffer: 64 * 1024 * 1024 };
    execFile(process.execPath, [CLI, 'audit', '--strict'], options, (error, stdout, stderr) =>
      resolve({ ok: error === null, said: error === null ? stdout : stdout + stderr }),
    );
  });

/** Asks until everything holds, or time is up: settlements and sweeps come after the last turn. */
export const auditUntilQuiet = async (
  stack: Pick<TestStack, 'home'>,
  deadlineMs = 120_000,
): Promise<{ ok: boolean; said: string }> => {
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    const audit = await auditStack(stack);
    if (audit.ok || performance.now() > deadline) return audit;
    await pause(2_000);
  }
};
