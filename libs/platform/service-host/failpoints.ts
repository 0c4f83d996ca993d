import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { FAILPOINTS, invalid, sleep } from '@antiphon/kernel';
import type { FailpointAction, FailpointName } from '@antiphon/kernel';

interface Armed {
  readonly name: FailpointName;
  /** Pass at which the action runs, counted from 1 in this process; 0 for every pass. */
  readonly nth: number;
  /** Text that the mark of the pass contains. Passes of other work do not count. */
  readonly mark: string;
  readonly act: () => Promise<void>;
}

const forever = (): Promise<void> => new Promise(() => undefined);

const ACTIONS: Readonly<Record<string, () => Promise<void>>> = {
  kill9: () => {
    process.kill(process.pid, 'SIGKILL');
    return forever();
  },
  // Suspends the whole process, as under a debugger, until it receives SIGCONT.
  stop: async () => void process.kill(process.pid, 'SIGSTOP'),
  exit0: async () => process.exit(0),
  hang: forever,
  throw: () => Promise.reject(new Error('a failpoint threw')),
};

const actionOf = (action: string): (() => Promise<void>) => {
  const delayed = /^delay=(\d+)$/.exec(action);
  if (delayed) return () => sleep(Number(delayed[1]));
  const known = ACTIONS[action];
  if (!known) throw invalid('FAILPOINT.UNKNOWN', `FAILPOINTS: unknown action ${action}`);
  return known;
};

const parse = (text: string): Map<FailpointName, Armed> =>
  new Map(
    text.split(',').map((entry) => {
      const [point, nth, action, mark = ''] = entry.trim().split(':');
      const name = FAILPOINTS.find((known) => known === point);
      if (name === undefined) throw invalid('FAILPOINT.UNKNOWN', `FAILPOINTS: unknown point ${point}`);
      return [
        name,
        { name, nth: nth === '*' ? 0 : Number(nth ?? 1), act: actionOf(action ?? 'kill9'), mark },
      ];
    }),
  );

const fromText = (text: string): FailpointAction => {
  const armed = parse(text);
  const passes = new Map<FailpointName, number>();
  return async (name, mark) => {
    const point = armed.get(name);
    if (!point || !mark().includes(point.mark)) return;
    const times = (passes.get(name) ?? 0) + 1;
    passes.set(name, times);
    if (point.nth === 0 || times === point.nth) await point.act();
  };
};

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT';

const readPlan = (path: string): string | null => {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
};

/** Claims a plan for this process: the first to reach its point the given number of times. */
const claimPlan = (path: string, plan: string): boolean => {
  try {
    renameSync(path, `${path}.claimed`);
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
  // A file of its own: another process may still read the plan that was renamed.
  writeFileSync(`${path}.hit`, JSON.stringify({ plan, pid: process.pid }));
  return true;
};

/** Reads one point from a file, which may appear while the process runs and is renamed when hit. */
const fromFile = (path: string): FailpointAction => {
  let known = { plan: '', passed: 0 };
  return async (name) => {
    const plan = readPlan(path);
    if (!plan) return;
    const point = parse(plan).get(name);
    if (!point) return;
    known = { plan, passed: known.plan === plan ? known.passed + 1 : 1 };
    if (known.passed >= point.nth && claimPlan(path, plan)) await point.act();
  };
};

/**
 * Parses `FAILPOINTS`. The form `name:nth:action,…` arms points in every incarnation of the
 * process. Its actions are kill9, stop, hang, throw, exit0 and delay=ms. `*` is every pass, and a
 * fourth part is a text that the mark of the work contains. The form `@file` names a
 * file with one `name:nth:action`. One process hits it once, and `<file>.hit` then contains its id.
 *
 * Returns null for an unset or empty variable. Throws `FAILPOINT.UNKNOWN`.
 */
export const failpointsFrom = (text: string | undefined): FailpointAction | null => {
  if (!text) return null;
  return text.startsWith('@') ? fromFile(text.slice(1)) : fromText(text);
};
