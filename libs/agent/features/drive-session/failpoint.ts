import { setTimeout as sleep } from 'node:timers/promises';
import { invalid } from '@antiphon/kernel';
import { FAILPOINTS } from './lane-services.js';
import type { Failpoint, FailpointName } from './lane-services.js';

/** Inert: what every process uses whose environment says nothing. */
export const noFailpoint: Failpoint = async () => undefined;

interface Armed {
  readonly nth: number;
  readonly act: () => Promise<void>;
}

const ACTIONS: Readonly<Record<string, () => Promise<void>>> = {
  kill9: async () => void process.kill(process.pid, 'SIGKILL'),
  hang: () => new Promise(() => undefined),
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
      const [name, nth, action] = entry.trim().split(':');
      if (!(FAILPOINTS as readonly string[]).includes(name ?? ''))
        throw invalid('FAILPOINT.UNKNOWN', `FAILPOINTS: ${name} is no point of the agent`);
      return [name as FailpointName, { nth: Number(nth ?? 1), act: actionOf(action ?? 'kill9') }];
    }),
  );

/** `FAILPOINTS=name:nth:action,…` with kill9, hang, throw or delay=ms; unset or empty, it does nothing. */
export const failpointsFrom = (text: string | undefined): Failpoint => {
  if (!text) return noFailpoint;
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
