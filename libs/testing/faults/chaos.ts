import { setTimeout as pause } from 'node:timers/promises';
import type { TestStack } from '../engines/start-stack.js';
import { RUN_KEY_INPUT, checkCommands } from '../load/check-commands.js';
import type { Verdict } from '../load/check-commands.js';
import { carryOutRun } from '../load/keyed-run.js';
import type { TakenRun } from '../load/keyed-run.js';
import { openDoor, sendTurn } from '../load/keyed-turn.js';
import type { TakenTurn } from '../load/keyed-turn.js';
import { seeded } from '../load/seeded.js';
import type { Chance } from '../load/seeded.js';
import { auditUntilQuiet } from './audit-stack.js';
import { readFacts } from './read-facts.js';
import { nextFault } from './stack-faults.js';

export interface ChaosOptions {
  readonly seed: number;
  readonly minutes: number;
  readonly sessions: number;
  /** False: the load alone, to know what the machine carries. */
  readonly faults?: boolean;
  readonly onProgress: (line: string) => void;
}

export interface ChaosReport extends Verdict {
  readonly faults: number;
  /** How often commands were sent; above their number by what clients had to send again. */
  readonly sent: number;
  readonly audit: { readonly ok: boolean; readonly said: string };
}

/** One agent with the offline provider, whose `/tool` lines make tool calls; as many turns at once as come. */
export const CHAOS_CONFIG = `
[gateway]
host = "127.0.0.1"
port = 0

[[providers]]
name = "scripted"
kind = "scripted"

[[agents]]
id = "main"
name = "Main"
provider = "scripted"
tools = ["echo", "calculator"]
`;

const WORKFLOW = {
  name: 'soak',
  inputs: { [RUN_KEY_INPUT]: {} },
  nodes: [
    { id: 'plan', agent: 'main', prompt: `plan {{inputs.${RUN_KEY_INPUT}}}` },
    { id: 'left', agent: 'main', needs: ['plan'], prompt: 'left of {{nodes.plan.output}}' },
    { id: 'right', agent: 'main', needs: ['plan'], prompt: '/tool echo {"side":"right"}' },
    { id: 'join', agent: 'main', needs: ['left', 'right'], prompt: 'join {{nodes.left.output}}' },
  ],
};

interface Soak {
  readonly stack: TestStack;
  readonly options: ChaosOptions;
  readonly turns: TakenTurn[];
  readonly runs: TakenRun[];
  /** What clients found wrong, before the log is looked at. */
  readonly failures: string[];
  readonly over: () => boolean;
}

const contentOf = (chance: Chance, key: string): string =>
  chance.below(3) > 0
    ? `tell me of ${key}`
    : `/tool echo {"of":"${key}"}\n/tool calculator {"expression":"6*7"}`;

/** Each call answers the next gateway, so that who finds one gone tries another. */
const anyGateway = (stack: TestStack, first: number): (() => string) => {
  const { gateways } = stack.stackJson().urls;
  let next = first;
  return () => gateways[next++ % gateways.length] ?? stack.gatewayUrl;
};

/** One session: its turns one after another, its connection lost now and then. */
const talk = async (soak: Soak, session: number): Promise<void> => {
  const { options, turns } = soak;
  const chance = seeded(options.seed * 1_000 + session);
  const gateway = anyGateway(soak.stack, session);
  const door = openDoor(() => `${gateway().replace(/^http/, 'ws')}/ws`);
  for (let turn = 1; !soak.over(); turn++) {
    const key = `chaos-${options.seed}-${session}-${turn}`;
    const lost = chance.below(20) === 0 ? pause(chance.below(100)).then(() => door.drop()) : undefined;
    turns.push(await sendTurn(door, { key, peer: `p${session}`, content: contentOf(chance, key) }));
    await lost;
  }
  await door.drop();
};

const RUN_PAUSE_MS = 500;

const runAndRun = async (soak: Soak, lane: number): Promise<void> => {
  const { options, runs } = soak;
  const gateway = anyGateway(soak.stack, lane);
  const chance = seeded(options.seed * 1_000_000 + lane);
  for (let run = 1; !soak.over(); run++) {
    const key = `chaos-run-${options.seed}-${lane}-${run}`;
    const command = {
      key,
      workflow: WORKFLOW,
      inputs: { [RUN_KEY_INPUT]: key },
      cancel: chance.below(5) === 0,
    };
    runs.push(await carryOutRun(gateway, command));
    await pause(RUN_PAUSE_MS);
  }
};

const breakThings = async ({ stack, options, over, turns, runs }: Soak): Promise<number> => {
  const chance = seeded(options.seed);
  const from = performance.now();
  let faults = 0;
  while (!over()) {
    await pause(chance.between(1_000, 8_000));
    const fault = nextFault(chance);
    if (over()) break;
    faults++;
    const at = Math.round((performance.now() - from) / 1_000);
    options.onProgress(`${at} s: ${fault.what} (${turns.length} turns, ${runs.length} runs so far)`);
    await fault.inflict(stack);
  }
  return faults;
};

const RUN_LANES = 4;

const load = (soak: Soak): Promise<unknown> => {
  const noted = (work: Promise<void>): Promise<void> =>
    work.catch((error: unknown) => {
      soak.failures.push(error instanceof Error ? error.message : String(error));
      soak.options.onProgress(`a client gave up: ${soak.failures.at(-1) ?? ''}`);
    });
  const sessions = Array.from({ length: soak.options.sessions }, (_, i) => noted(talk(soak, i + 1)));
  const lanes = Array.from({ length: RUN_LANES }, (_, i) => noted(runAndRun(soak, i + 1)));
  return Promise.all([...sessions, ...lanes]);
};

/**
 * Loads a stack with turns and runs, breaks it by a schedule that follows from the seed, and then holds every command
 * that was accepted against the log, and the log against the audit.
 */
export const runChaos = async (stack: TestStack, options: ChaosOptions): Promise<ChaosReport> => {
  const end = performance.now() + options.minutes * 60_000;
  const over = (): boolean => performance.now() > end;
  const soak: Soak = { stack, options, over, turns: [], runs: [], failures: [] };
  const working = load(soak);
  const faults = options.faults === false ? 0 : await breakThings(soak);
  options.onProgress('no more faults: waiting for what was accepted');
  await working;
  const audit = await auditUntilQuiet(stack);
  const verdict = checkCommands(soak, await readFacts(stack));
  const [failure] = soak.failures;
  return {
    ...verdict,
    lost: verdict.lost + soak.failures.length,
    first: failure ?? verdict.first ?? (audit.ok ? null : audit.said),
    faults,
    sent: soak.turns.reduce((sum, { sent }) => sum + sent, 0),
    audit,
  };
};
