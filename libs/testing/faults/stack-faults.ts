import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { TestStack } from '../engines/start-stack.js';
import type { SeededRandom } from '../load/seeded-random.js';
import { letTimePass, until } from '../waits.js';

const SERVICES = ['gateway', 'agent', 'metering', 'memory', 'sandbox'] as const;
type Service = (typeof SERVICES)[number];
type Engine = 'postgres' | 'nats' | 'temporal';

/** One fault, with all its details chosen before it is injected. */
export interface Fault {
  /** E.g. `kill -9 agent`. */
  readonly what: string;
  /** Resolves when the fault itself is over; the process that it hit may still be restarting. */
  inflict(stack: TestStack): Promise<void>;
}

const pidsOf = (stack: TestStack, service: Service): number[] =>
  stack.stackJson().services[service].flatMap(({ pid }) => (pid === null ? [] : [pid]));

const enginePids = (stack: TestStack, engine: Engine): number[] => {
  const { pid } = stack.stackJson().engines[engine];
  return pid === null ? [] : [pid];
};

/** Signals a process; one that has died already is ignored. */
const signal = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
};

const pickOne = (pids: readonly number[], nth: number): number[] =>
  pids.length === 0 ? [] : [pids[nth % pids.length] as number];

const signalService =
  (name: NodeJS.Signals, what: string) =>
  (random: SeededRandom): Fault => {
    const [service, nth] = [random.pick(SERVICES), random.below(16)];
    return {
      what: `${what} ${service}`,
      inflict: async (stack) => pickOne(pidsOf(stack, service), nth).forEach((pid) => signal(pid, name)),
    };
  };

const stopService = (random: SeededRandom): Fault => {
  const [service, nth, seconds] = [random.pick(SERVICES), random.below(16), random.between(5, 20)];
  return {
    what: `stop ${service} for ${seconds} s`,
    inflict: async (stack) => {
      const pids = pickOne(pidsOf(stack, service), nth);
      for (const pid of pids) signal(pid, 'SIGSTOP');
      await letTimePass(seconds * 1_000);
      for (const pid of pids) signal(pid, 'SIGCONT');
    },
  };
};

const signalEngine = (engine: Engine, name: NodeJS.Signals, what: string) => (): Fault => ({
  what,
  inflict: async (stack) => enginePids(stack, engine).forEach((pid) => signal(pid, name)),
});

const isGone = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
};

/** Returns true for a process that has ended, also for one whose parent has not taken note of it. */
const hasEnded = (pid: number): boolean => {
  try {
    return /^\d+ \(.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return true;
  }
};

/**
 * Stops the supervisor while the folder is deleted, so that NATS does not restart with half of its
 * files.
 */
export const forgetNats = (): Fault => ({
  what: "kill -9 NATS and delete JetStream's folder",
  inflict: async (stack) => {
    const { supervisor } = stack.stackJson();
    const pids = enginePids(stack, 'nats');
    signal(supervisor.pid, 'SIGSTOP');
    try {
      for (const pid of pids) signal(pid, 'SIGKILL');
      // Its parent is stopped, so the process stays a zombie. A zombie holds no file.
      await until(() => pids.every(hasEnded));
      rmSync(join(stack.home, 'nats', 'jetstream'), { recursive: true, force: true });
    } finally {
      signal(supervisor.pid, 'SIGCONT');
    }
    await until(() => pids.every(isGone));
  },
});

/** Kinds of fault of a schedule; a kind that is listed more often is chosen more often. */
const KINDS: readonly ((random: SeededRandom) => Fault)[] = [
  signalService('SIGKILL', 'kill -9'),
  signalService('SIGKILL', 'kill -9'),
  signalService('SIGKILL', 'kill -9'),
  signalService('SIGTERM', 'SIGTERM'),
  signalService('SIGTERM', 'SIGTERM'),
  stopService,
  stopService,
  signalEngine('nats', 'SIGTERM', 'restart NATS'),
  signalEngine('nats', 'SIGKILL', 'kill -9 NATS'),
  forgetNats,
  signalEngine('postgres', 'SIGINT', 'restart PostgreSQL (fast)'),
  signalEngine('postgres', 'SIGQUIT', 'restart PostgreSQL (immediate)'),
  signalEngine('postgres', 'SIGKILL', 'kill -9 the postmaster'),
  signalEngine('temporal', 'SIGTERM', 'restart Temporal'),
  signalEngine('temporal', 'SIGKILL', 'kill -9 Temporal'),
];

/** Chooses the next fault of a schedule. */
export const nextFault = (random: SeededRandom): Fault => random.pick(KINDS)(random);
