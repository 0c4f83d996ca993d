import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { FAILPOINTS, invalid } from '@antiphon/kernel';
import type { FailpointAction, FailpointName } from '@antiphon/kernel';

interface Armed {
  readonly name: FailpointName;
  /** Which time, counted from 1, that this process comes by. */
  readonly nth: number;
  readonly act: () => Promise<void>;
}

const forever = (): Promise<void> => new Promise(() => undefined);

const ACTIONS: Readonly<Record<string, () => Promise<void>>> = {
  kill9: () => {
    process.kill(process.pid, 'SIGKILL');
    return forever();
  },
  // The whole process stands still here, as under a debugger, until somebody sends SIGCONT.
  stop: async () => void process.kill(process.pid, 'SIGSTOP'),
  exit0: async () => process.exit(0),
  hang: forever,
  throw: () => Promise.reject(new Error('a failpoint threw')),
};

const actionOf = (action: string): (() => Promise<void>) => {
  const delayed = /^delay=(\d+)$/.exec(action);
  if (delayed) return () => sleep(Number(delayed[1]));
  const known = ACTIONS[action];
  if (!known) throw invalid('FAILPOINT.UNKNOWN', `FAILPOINTS: ${action} is no action`);
  return known;
};

const parse = (text: string): Map<FailpointName, Armed> =>
  new Map(
    text.split(',').map((entry) => {
      const [point, nth, action] = entry.trim().split(':');
      const name = FAILPOINTS.find((known) => known === point);
      if (name === undefined) throw invalid('FAILPOINT.UNKNOWN', `FAILPOINTS: there is no point ${point}`);
      return [name, { name, nth: Number(nth ?? 1), act: actionOf(action ?? 'kill9') }];
    }),
  );

const fromText = (text: string): FailpointAction => {
  const armed = parse(text);
  const passed = new Map<FailpointName, number>();
  return async (name) => {
    const point = armed.get(name);
    if (!point) return;
    const times = (passed.get(name) ?? 0) + 1;
    passed.set(name, times);
    if (times === point.nth) await point.act();
  };
};

const missing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT';

const readPlan = (path: string): string | null => {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    if (missing(error)) return null;
    throw error;
  }
};

/** One process alone takes a plan: the first that gets to its point so many times. */
const take = (path: string, plan: string): boolean => {
  try {
    renameSync(path, `${path}.hit`);
  } catch (error) {
    if (missing(error)) return false;
    throw error;
  }
  writeFileSync(`${path}.hit`, JSON.stringify({ plan, pid: process.pid }));
  return true;
};

/** The plan is one point, in a file that may come while the process runs, and goes when it has been hit. */
const fromFile = (path: string): FailpointAction => {
  let known = { plan: '', passed: 0 };
  return async (name) => {
    const plan = readPlan(path);
    if (!plan) return;
    const point = parse(plan).get(name);
    if (!point) return;
    known = { plan, passed: known.plan === plan ? known.passed + 1 : 1 };
    if (known.passed >= point.nth && take(path, plan)) await point.act();
  };
};

/**
 * What `FAILPOINTS` arms: `name:nth:action,…` with kill9, stop, hang, throw, exit0 or delay=ms, in every incarnation of
 * the process; or `@file`, whose one `name:nth:action` is hit by one process once (then `<file>.hit` says which).
 * Null when it is unset or empty. Throws `FAILPOINT.UNKNOWN`.
 */
export const failpointsFrom = (text: string | undefined): FailpointAction | null => {
  if (!text) return null;
  return text.startsWith('@') ? fromFile(text.slice(1)) : fromText(text);
};
