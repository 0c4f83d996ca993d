import type { TestStack } from '../engines/start-stack.js';
import { RUN_KEY_INPUT, checkCommands } from '../load/check-commands.js';
import type { AllowedEnds, Verdict } from '../load/check-commands.js';
import { runToEnd } from '../load/run-to-end.js';
import type { EndedRun } from '../load/run-to-end.js';
import { createSeededRandom } from '../load/seeded-random.js';
import type { SeededRandom } from '../load/seeded-random.js';
import { createReconnectingClient, sendTurn } from '../load/send-turn.js';
import type { SentTurn } from '../load/send-turn.js';
import { letTimePass } from '../waits.js';
import { auditUntilQuiet, readFacts } from './check-stack.js';
import type { Audit } from './check-stack.js';
import { nextFault } from './stack-faults.js';

export interface ChaosOptions {
  readonly seed: number;
  readonly minutes: number;
  readonly sessions: number;
  /** False: the load alone, to measure what the machine carries. Default: true. */
  readonly faults?: boolean;
  readonly onProgress: (line: string) => void;
}

export interface ChaosReport extends Verdict {
  readonly faults: number;
  /** Number of times that turns were sent; exceeds `turns` by the clients' retries. */
  readonly sent: number;
  readonly audit: Audit;
}

/** Configures one agent with the offline provider, whose `/tool` lines make tool calls. */
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

/**
 * A turn may fail when five of its drivers in a row are killed. Every other fault of the schedule
 * may delay a turn, and must not fail it.
 */
export const CHAOS_ENDS: AllowedEnds = { completed: { atLeast: 0.999 }, failed: ['TURN.DRIVER_LOST'] };

/** Fewer turns a minute than this from one session mean that the load itself stood still. */
const MIN_TURNS_A_MINUTE = 4;
const RUN_LANES = 4;
const RUN_PAUSE_MS = 500;

const WORKFLOW = {
  name: 'chaos',
  inputs: { [RUN_KEY_INPUT]: {} },
  nodes: [
    { id: 'plan', agent: 'main', prompt: `plan {{inputs.${RUN_KEY_INPUT}}}` },
    { id: 'left', agent: 'main', needs: ['plan'], prompt: 'left of {{nodes.plan.output}}' },
    { id: 'right', agent: 'main', needs: ['plan'], prompt: '/tool echo {"side":"right"}' },
    { id: 'join', agent: 'main', needs: ['left', 'right'], prompt: 'join {{nodes.left.output}}' },
  ],
};

/** Returns a text turn in two of three cases, else one with two tool calls. */
const chooseContent = (random: SeededRandom, key: string): string =>
  random.below(3) > 0
    ? `tell me of ${key}`
    : `/tool echo {"of":"${key}"}\n/tool calculator {"expression":"6*7"}`;

/**
 * Returns a function that cycles through the gateways, so that a client whose gateway is gone tries
 * another.
 */
export const rotateGateways = (stack: TestStack, first = 0): (() => string) => {
  const { gateways } = stack.stackJson().urls;
  let next = first;
  return () => gateways[next++ % gateways.length] ?? stack.gatewayUrl;
};

class ChaosRun {
  private readonly turns: SentTurn[] = [];
  private readonly runs: EndedRun[] = [];
  /** Errors of clients, found before the log is read. */
  private readonly failures: string[] = [];
  private readonly startedAt = performance.now();

  constructor(
    private readonly stack: TestStack,
    private readonly options: ChaosOptions,
  ) {}

  async execute(): Promise<ChaosReport> {
    const { onProgress, faults: isFaulty = true } = this.options;
    const load = this.startLoad();
    const faults = isFaulty ? await this.injectFaults() : 0;
    onProgress('no more faults: waiting for the accepted commands');
    await load;
    const audit = await auditUntilQuiet(this.stack);
    const verdict = checkCommands(
      { turns: this.turns, runs: this.runs },
      await readFacts(this.stack),
      CHAOS_ENDS,
    );
    const problems = [
      ...this.failures,
      ...verdict.problems,
      ...this.checkVolume(),
      ...(audit.ok ? [] : [audit.output]),
    ];
    return {
      ...{ ...verdict, problems, first: problems[0] ?? null, faults, audit },
      lost: verdict.lost + this.failures.length,
      sent: this.turns.reduce((sum, { sent }) => sum + sent, 0),
    };
  }

  private isOver(): boolean {
    return performance.now() > this.startedAt + this.options.minutes * 60_000;
  }

  private startLoad(): Promise<unknown> {
    const sessions = Array.from({ length: this.options.sessions }, (_, i) => this.runSession(i + 1));
    const lanes = Array.from({ length: RUN_LANES }, (_, i) => this.startRuns(i + 1));
    return Promise.all([...sessions, ...lanes].map((client) => this.collectFailure(client)));
  }

  private collectFailure(client: Promise<void>): Promise<void> {
    return client.catch((error: unknown) => {
      const message = error instanceof Error ? error.message : String(error);
      this.failures.push(message);
      this.options.onProgress(`a client gave up: ${message}`);
    });
  }

  /** Sends the turns of one session, one after another; its connection is lost now and then. */
  private async runSession(session: number): Promise<void> {
    const { seed } = this.options;
    const random = createSeededRandom(seed * 1_000 + session);
    const nextGateway = rotateGateways(this.stack, session);
    const client = createReconnectingClient(() => `${nextGateway().replace(/^http/, 'ws')}/ws`);
    for (let turn = 1; !this.isOver(); turn++) {
      const key = `chaos-${seed}-${session}-${turn}`;
      const isDropped = random.below(20) === 0;
      const dropped = isDropped ? letTimePass(random.below(100)).then(() => client.disconnect()) : undefined;
      const command = { key, peer: `p${session}`, content: chooseContent(random, key) };
      this.turns.push(await sendTurn(client, command));
      await dropped;
    }
    await client.disconnect();
  }

  private async startRuns(lane: number): Promise<void> {
    const { seed } = this.options;
    const nextGateway = rotateGateways(this.stack, lane);
    const random = createSeededRandom(seed * 1_000_000 + lane);
    for (let nth = 1; !this.isOver(); nth++) {
      const key = `chaos-run-${seed}-${lane}-${nth}`;
      const cancel = random.below(5) === 0;
      const inputs = { [RUN_KEY_INPUT]: key };
      this.runs.push(await runToEnd(nextGateway, { key, workflow: WORKFLOW, inputs, cancel }));
      await letTimePass(RUN_PAUSE_MS);
    }
  }

  private async injectFaults(): Promise<number> {
    const random = createSeededRandom(this.options.seed);
    let faults = 0;
    while (!this.isOver()) {
      await letTimePass(random.between(1_000, 8_000));
      const fault = nextFault(random);
      if (this.isOver()) break;
      faults++;
      const at = Math.round((performance.now() - this.startedAt) / 1_000);
      const soFar = `${this.turns.length} turns, ${this.runs.length} runs so far`;
      this.options.onProgress(`${at} s: ${fault.what} (${soFar})`);
      await fault.inflict(this.stack);
    }
    return faults;
  }

  private checkVolume(): string[] {
    const { sessions, minutes } = this.options;
    const minimum = Math.ceil(sessions * minutes * MIN_TURNS_A_MINUTE);
    return [
      ...(this.turns.length < minimum ? [`${this.turns.length} turns ended, at least ${minimum} must`] : []),
      ...(this.runs.length < RUN_LANES ? [`${this.runs.length} runs ended, at least ${RUN_LANES} must`] : []),
    ];
  }
}

/**
 * Loads a stack with turns and runs, and breaks it by a schedule that follows from the seed. Then
 * compares every accepted command with the log, and audits the log.
 */
export const runChaos = (stack: TestStack, options: ChaosOptions): Promise<ChaosReport> =>
  new ChaosRun(stack, options).execute();
