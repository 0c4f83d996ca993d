import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { TestStack } from '../engines/start-stack.js';
import type { Chance } from '../load/seeded.js';

const SERVICES = ['gateway', 'agent', 'metering', 'memory', 'sandbox'] as const;

/** One fault, chosen in all its details before it is done. */
export interface Fault {
  /** As it is printed, e.g. `kill -9 agent`. */
  readonly what: string;
  /** Resolves when the fault itself is over; what it broke may still be on its way back. */
  inflict(stack: TestStack): Promise<void>;
}

const pidsOf = (stack: TestStack, service: (typeof SERVICES)[number]): number[] =>
  stack.stackJson().services[service].flatMap(({ pid }) => (pid === null ? [] : [pid]));

type Engine = 'postgres' | 'nats' | 'temporal';
const engineOf = (stack: TestStack, engine: Engine): number[] => {
  const { pid } = stack.stackJson().engines[engine];
  return pid === null ? [] : [pid];
};

/** A process that has died by itself meanwhile needs no signal. */
const signal = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
};

const pickOne = (pids: readonly number[], nth: number): number[] =>
  pids.length === 0 ? [] : [pids[nth % pids.length] as number];

const toService =
  (name: NodeJS.Signals, what: string) =>
  (chance: Chance): Fault => {
    const [service, nth] = [chance.pick(SERVICES), chance.below(16)];
    return {
      what: `${what} ${service}`,
      inflict: async (stack) => pickOne(pidsOf(stack, service), nth).forEach((pid) => signal(pid, name)),
    };
  };

const standStill = (chance: Chance): Fault => {
  const [service, nth, seconds] = [chance.pick(SERVICES), chance.below(16), chance.between(5, 20)];
  return {
    what: `stop ${service} for ${seconds} s`,
    inflict: async (stack) => {
      const pids = pickOne(pidsOf(stack, service), nth);
      for (const pid of pids) signal(pid, 'SIGSTOP');
      await pause(seconds * 1_000);
      for (const pid of pids) signal(pid, 'SIGCONT');
    },
  };
};

const toEngine = (engine: Engine, name: NodeJS.Signals, what: string) => (): Fault => ({
  what,
  inflict: async (stack) => engineOf(stack, engine).forEach((pid) => signal(pid, name)),
});

const isGone = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
};

/** The supervisor stands still meanwhile, so that the server does not come back onto a folder that is half there. */
export const forgetNats = (): Fault => ({
  what: "kill -9 NATS and delete JetStream's folder",
  inflict: async (stack) => {
    const { supervisor } = stack.stackJson();
    const pids = engineOf(stack, 'nats');
    signal(supervisor.pid, 'SIGSTOP');
    try {
      for (const pid of pids) signal(pid, 'SIGKILL');
      // Its parent stands still: it stays a zombie, which holds no file any more.
      await pause(200);
      rmSync(join(stack.home, 'nats', 'jetstream'), { recursive: true, force: true });
    } finally {
      signal(supervisor.pid, 'SIGCONT');
    }
    for (let i = 0; i < 100 && !pids.every(isGone); i++) await pause(50);
  },
});

/** A schedule's kinds of fault, as often as they stand here. */
const KINDS: readonly ((chance: Chance) => Fault)[] = [
  toService('SIGKILL', 'kill -9'),
  toService('SIGKILL', 'kill -9'),
  toService('SIGKILL', 'kill -9'),
  toService('SIGTERM', 'SIGTERM'),
  toService('SIGTERM', 'SIGTERM'),
  standStill,
  standStill,
  toEngine('nats', 'SIGTERM', 'restart NATS'),
  toEngine('nats', 'SIGKILL', 'kill -9 NATS'),
  forgetNats,
  toEngine('postgres', 'SIGINT', 'restart PostgreSQL (fast)'),
  toEngine('postgres', 'SIGQUIT', 'restart PostgreSQL (immediate)'),
  toEngine('postgres', 'SIGKILL', 'kill -9 the postmaster'),
  toEngine('temporal', 'SIGTERM', 'restart Temporal'),
  toEngine('temporal', 'SIGKILL', 'kill -9 Temporal'),
];

/** The next fault of a schedule. */
export const nextFault = (chance: Chance): Fault => chance.pick(KINDS)(chance);
