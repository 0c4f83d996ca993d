import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endTestRun, TEST_RUN } from '../bootstrap/test-run.mjs';
import { ROOT } from './parts.mjs';

/**
 * @typedef {object} Row One row of the table.
 * @property {string} what
 * @property {string} figure
 * @property {string} bound
 * @property {'ok' | 'failed' | 'skipped'} result
 *
 * @typedef {object} Outcome
 * @property {'ok' | 'failed' | 'skipped'} result
 * @property {string} note How the part ended: a count of tests, or why it failed or was skipped.
 * @property {Row[]} rows
 * @property {number} ms
 */

const KILL_AFTER_MS = 15_000;
const FIGURES = 'figures';
/** The last line of a test run, and the line of one check of `npm run verify`. */
const COUNT = /^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/m;
const CHECK = /^(ok|skip|FAIL) +(.+?): ?(.*)$/gm;
const CHECK_RESULTS = { ok: 'ok', skip: 'skipped', FAIL: 'failed' };

/** Reads the figures that specs have recorded (libs/testing/load/figures.ts). */
const readFigures = (path) =>
  existsSync(path)
    ? readFileSync(path, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => {
          const { what, figure, bound, ok } = JSON.parse(line);
          return { what, figure, bound, result: ok ? 'ok' : 'failed' };
        })
    : [];

const readChecks = (output) =>
  [...output.matchAll(CHECK)].map(([, kind, what, figure]) => {
    return { what, figure, bound: '', result: CHECK_RESULTS[kind] };
  });

const signalGroup = (pid, signal) => {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
};

/** Runs a command in a process group of its own, which ends at the time limit or on abort. */
const runGroup = ({ args, env, minutes }, folder, signal) =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, args, {
      cwd: ROOT,
      detached: true,
      env: { ...process.env, ...env, ANTIPHON_FIGURES_FILE: join(folder, FIGURES), [TEST_RUN]: folder },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    let reason = null;
    let killTimer;
    const end = (why) => {
      reason ??= why;
      signalGroup(child.pid, 'SIGTERM');
      killTimer = setTimeout(() => signalGroup(child.pid, 'SIGKILL'), KILL_AFTER_MS);
    };
    const limit = setTimeout(() => end(`time limit of ${minutes} min`), minutes * 60_000);
    const onAbort = () => end('interrupted');
    signal?.addEventListener('abort', onAbort, { once: true });
    const collect = (stream) => (chunk) => {
      output += chunk;
      stream.write(chunk);
    };
    child.stdout.on('data', collect(process.stdout));
    child.stderr.on('data', collect(process.stderr));
    child.once('close', (code, endedBy) => {
      clearTimeout(limit);
      clearTimeout(killTimer);
      signal?.removeEventListener('abort', onAbort);
      resolve({ code, output, reason: reason ?? (endedBy && `ended by ${endedBy}`) });
    });
  });

const describeEnd = ({ code, output, reason }) => {
  if (reason !== null) return reason;
  const count = COUNT.exec(output);
  if (count && (code === 0 || count[2] !== '0')) return count[0];
  return code === 0 ? 'completed' : `exit code ${code}`;
};

/**
 * Runs one part. Never rejects: a part that cannot run is skipped, with its reason.
 * @param {import('./parts.mjs').Part} part
 * @param {AbortSignal} [signal]
 * @returns {Promise<Outcome>}
 */
export const runPart = async (part, signal) => {
  const startedAt = performance.now();
  const missing = part.missing?.() ?? null;
  if (missing !== null) return { result: 'skipped', note: missing, rows: [], ms: 0 };
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-nightly-'));
  try {
    const run = await runGroup(part, folder, signal);
    // Detached stacks have sessions of their own.
    if (run.reason !== null) await endTestRun(folder, (line) => console.error(line));
    const rows = [...readFigures(join(folder, FIGURES)), ...readChecks(run.output)];
    const ok = run.code === 0 && run.reason === null;
    return { result: ok ? 'ok' : 'failed', note: describeEnd(run), rows, ms: performance.now() - startedAt };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
