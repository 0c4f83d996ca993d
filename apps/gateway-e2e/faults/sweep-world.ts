import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { until } from '@antiphon/testing';
import { CHAOS_CONFIG, auditUntilQuiet, readFacts } from '@antiphon/testing/faults';
import { RUN_KEY_INPUT, carryOutRun, checkCommands, openDoor, sendTurn } from '@antiphon/testing/load';
import type { TakenRun, TakenTurn, Verdict } from '@antiphon/testing/load';
import { startStack } from '@antiphon/testing/stack';
import type { TestStack } from '@antiphon/testing/stack';
import type { FailpointName } from '@antiphon/kernel';
import { GUARDED_AGENT, GUARDED_CONFIG, answerApprovals, approvalFaults } from './approval-job.js';
import type { Fault, Job } from './fault-cases.js';

export interface SweptCase {
  readonly point: FailpointName;
  readonly job: Job;
  readonly fault: Fault;
  /** How long a process that is stopped stands still. */
  readonly stillMs: number;
}

export interface Swept {
  readonly accepted: number;
  /** From the last blow until every command of the case had its end. */
  readonly resumedMs: number;
  /** Of these clients' commands; what the log says of them. */
  readonly verdict: Verdict;
}

export interface SweepWorld {
  readonly stack: TestStack;
  /** Has the stack at work, breaks it at the point, and waits until everything that was accepted has ended. */
  sweep(swept: SweptCase): Promise<Swept>;
  /** Everything that was ever accepted, against the log, and the log against the audit. */
  judge(): Promise<{
    readonly verdict: Verdict;
    readonly audit: { readonly ok: boolean; readonly said: string };
  }>;
  close(): Promise<void>;
}

const WORKFLOW = {
  name: 'sweep',
  inputs: { [RUN_KEY_INPUT]: {} },
  nodes: [
    { id: 'first', agent: 'main', prompt: `first {{inputs.${RUN_KEY_INPUT}}}` },
    { id: 'second', agent: 'main', needs: ['first'], prompt: '/tool echo {"after":"first"}' },
  ],
};
const AT_ONCE = 8;
/** A point is come by within this, on a machine of any speed. */
const HIT_MS = 60_000;

interface Plan {
  readonly path: string;
  arm(point: FailpointName, action: string): void;
  /** The process that came by. */
  hit(): Promise<number>;
}

const createPlan = (folder: string): Plan => {
  const path = join(folder, 'plan');
  return {
    path,
    arm: (point, action) => {
      rmSync(`${path}.hit`, { force: true });
      writeFileSync(`${path}.next`, `${point}:1:${action}`);
      renameSync(`${path}.next`, path);
    },
    hit: async () => {
      const read = (): { pid: number } | null => {
        try {
          return JSON.parse(readFileSync(`${path}.hit`, 'utf8')) as { pid: number };
        } catch {
          return null;
        }
      };
      await until(() => existsSync(`${path}.hit`) && read() !== null, HIT_MS);
      return read()?.pid ?? 0;
    },
  };
};

interface Taken {
  readonly turns: TakenTurn[];
  readonly runs: TakenRun[];
}

const anyGateway = (stack: TestStack): (() => string) => {
  const { gateways } = stack.stackJson().urls;
  let next = 0;
  return () => gateways[next++ % gateways.length] ?? stack.gatewayUrl;
};

/** Turns of so many sessions at once; of the guarded agent, with somebody who answers. */
const doTurns = async (stack: TestStack, name: string, guarded: boolean): Promise<TakenTurn[]> => {
  const gateway = anyGateway(stack);
  const talk = async (i: number): Promise<TakenTurn> => {
    const door = openDoor(() => `${gateway().replace(/^http/, 'ws')}/ws`);
    const key = `${name}-${i}`;
    const command = { key, peer: `p${i}`, content: `/tool echo {"of":"${key}"}` };
    const turn = sendTurn(door, command, undefined, guarded ? { agent: GUARDED_AGENT } : {});
    return turn.finally(() => door.drop());
  };
  let over = false;
  const answering = guarded ? answerApprovals(gateway, () => over) : undefined;
  const turns = await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => talk(i))).finally(() => {
    over = true;
  });
  await answering;
  const faults = guarded ? await approvalFaults(stack, turns) : [];
  if (faults.length > 0) throw new Error(faults.join('\n'));
  return turns;
};

const doJob = async (stack: TestStack, job: Job, name: string): Promise<Taken> => {
  const gateway = anyGateway(stack);
  if (job === 'run' || job === 'cancel') {
    const keys = Array.from({ length: 2 }, (_, i) => `${name}-${i}`);
    const runs = keys.map((key) =>
      carryOutRun(gateway, {
        ...{ key, workflow: WORKFLOW, inputs: { [RUN_KEY_INPUT]: key }, cancel: job === 'cancel' },
      }),
    );
    return { turns: [], runs: await Promise.all(runs) };
  }
  return { turns: await doTurns(stack, name, job === 'approval'), runs: [] };
};

const breakAt = async (plan: Plan, { point, fault, stillMs }: SweptCase): Promise<void> => {
  plan.arm(point, fault === 'stop' ? 'stop' : 'kill9');
  const pid = await plan.hit();
  if (fault === 'stop') {
    await pause(stillMs);
    process.kill(pid, 'SIGCONT');
  }
  if (fault === 'kill9 twice') {
    plan.arm(point, 'kill9');
    await plan.hit();
  }
};

const isWhole = (stack: TestStack): boolean =>
  Object.values(stack.stackJson().services)
    .flat()
    .every(({ state }) => state === 'ready');

/** Two gateways and two agents, so that one can go on while the other stands still, and one of the rest. */
export const createSweepWorld = async (): Promise<SweepWorld> => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-sweep-'));
  const plan = createPlan(folder);
  const env = { FAILPOINTS: `@${plan.path}` };
  const stack = await startStack({
    config: `${CHAOS_CONFIG}${GUARDED_CONFIG}`,
    env,
    scale: { gateway: 2, agent: 2 },
  });
  const all: Taken = { turns: [], runs: [] };
  let cases = 0;
  /** What was done before the point was come by is done again: the point may be one that not every job comes by. */
  const work = async (job: Job, name: string, broken: () => boolean): Promise<Taken> => {
    const taken: Taken = { turns: [], runs: [] };
    for (let round = 1; round === 1 || !broken(); round++) {
      const { turns, runs } = await doJob(stack, job, `${name}-${round}`);
      taken.turns.push(...turns);
      taken.runs.push(...runs);
    }
    return taken;
  };
  const sweep = async (swept: SweptCase): Promise<Swept> => {
    const name = `sweep-${++cases}`;
    let over = false;
    let brokenAt = 0;
    const breaking = breakAt(plan, swept).finally(() => {
      over = true;
      brokenAt = performance.now();
    });
    const [taken] = await Promise.all([work(swept.job, name, () => over), breaking]);
    const resumedMs = performance.now() - brokenAt;
    await until(() => isWhole(stack), 60_000);
    all.turns.push(...taken.turns);
    all.runs.push(...taken.runs);
    const verdict = checkCommands(taken, await readFacts(stack));
    return { accepted: taken.turns.length + taken.runs.length, resumedMs, verdict };
  };
  return {
    stack,
    sweep,
    judge: async () => ({
      audit: await auditUntilQuiet(stack),
      verdict: checkCommands(all, await readFacts(stack)),
    }),
    close: async () => {
      await stack.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
