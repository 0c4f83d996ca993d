import { until } from '@antiphon/testing';
import { CHAOS_CONFIG, auditUntilQuiet, readFacts, rotateGateways } from '@antiphon/testing/faults';
import type { Audit } from '@antiphon/testing/faults';
import {
  ALL_COMPLETE,
  RUN_KEY_INPUT,
  checkCommands,
  createReconnectingClient,
  runToEnd,
  sendTurn,
} from '@antiphon/testing/load';
import type { AllowedEnds, EndedRun, SentTurn, Verdict } from '@antiphon/testing/load';
import { startStack } from '@antiphon/testing/stack';
import type { TestStack } from '@antiphon/testing/stack';
import { letTimePass } from '@antiphon/testing/waits';
import { findTreeFaults, liveTree, spawnChain } from './agent-trees.js';
import { GUARDED_AGENT, GUARDED_CONFIG, answerApprovals, findApprovalFaults } from './approval-turns.js';
import { FailpointPlan } from './failpoint-plan.js';
import type { Fault, FaultCase, Job } from './fault-cases.js';
import { OVERSIZED_AGENT, OVERSIZED_ENDS, prepareOversized } from './oversized-turns.js';

export interface SweepCase extends FaultCase {
  readonly fault: Fault;
  /** Time that a stopped process stays stopped, ms. */
  readonly stoppedMs: number;
}

export interface SweepResult {
  readonly accepted: number;
  /** Time from the last fault until every command of the case had ended. */
  readonly resumedMs: number;
  readonly verdict: Verdict;
}

interface Commands {
  readonly turns: SentTurn[];
  readonly runs: EndedRun[];
}

/**
 * A fault at a failpoint hits a turn at most twice, and five lost drivers fail it: every turn
 * completes.
 */
export const SWEEP_ENDS: AllowedEnds = ALL_COMPLETE;

const WORKFLOW = {
  name: 'sweep',
  inputs: { [RUN_KEY_INPUT]: {} },
  nodes: [
    { id: 'first', agent: 'main', prompt: `first {{inputs.${RUN_KEY_INPUT}}}` },
    { id: 'second', agent: 'main', needs: ['first'], prompt: '/tool echo {"after":"first"}' },
  ],
};
const SESSIONS = 8;
const OVERSIZED_SESSIONS = 2;
const RUNS = 2;
const TREES = 3;
/** Number of agents from the root of a tree to the one that asks for approvals. */
const GUARDED_DEPTH = 3;

const isReady = (stack: TestStack): boolean =>
  Object.values(stack.stackJson().services)
    .flat()
    .every(({ state }) => state === 'ready');

/** A stack that is broken at one failpoint after the other while clients use it. */
export class FailpointSweep {
  private readonly all: Commands = { turns: [], runs: [] };
  private cases = 0;

  private constructor(
    private readonly stack: TestStack,
    private readonly plan: FailpointPlan,
    private readonly oversized: ReturnType<typeof prepareOversized>,
    /** Agents of a tree, the root first. The last one makes the calls that need an approval. */
    private readonly guarded: readonly string[],
  ) {}

  /**
   * Starts two gateways and two agents, so that one continues while the other is stopped, and one
   * of the rest.
   */
  static async start(): Promise<FailpointSweep> {
    const plan = new FailpointPlan();
    const oversized = prepareOversized();
    const stack = await startStack({
      watchesHealth: false,
      shareDatabase: true,
      config: `${CHAOS_CONFIG}${GUARDED_CONFIG}${oversized.config}`,
      env: { FAILPOINTS: plan.variable },
      scale: { gateway: 2, agent: 2 },
    });
    const guarded = await spawnChain(rotateGateways(stack), GUARDED_AGENT, GUARDED_DEPTH);
    return new FailpointSweep(stack, plan, oversized, guarded);
  }

  /**
   * Sends commands, breaks a process at the failpoint, and waits until every accepted command has
   * ended.
   */
  async run(sweepCase: SweepCase): Promise<SweepResult> {
    const name = `sweep-${++this.cases}`;
    let isOver = false;
    let brokenAt = 0;
    const breaking = this.breakAt(sweepCase).finally(() => {
      isOver = true;
      brokenAt = performance.now();
    });
    const [commands] = await Promise.all([this.sendUntil(() => isOver, sweepCase.job, name), breaking]);
    const resumedMs = performance.now() - brokenAt;
    await until(() => isReady(this.stack), 60_000);
    if (sweepCase.job === 'approval') {
      const faults = await findApprovalFaults(this.stack, commands.turns);
      if (faults.length > 0) throw new Error(faults.join('\n'));
    }
    const isOversized = sweepCase.job === 'oversized';
    if (!isOversized) this.all.turns.push(...commands.turns);
    this.all.runs.push(...commands.runs);
    const ends = isOversized ? OVERSIZED_ENDS : SWEEP_ENDS;
    const verdict = checkCommands(commands, await readFacts(this.stack), ends);
    return { accepted: commands.turns.length + commands.runs.length, resumedMs, verdict };
  }

  /** Compares all commands of the sweep with the log, and audits the log. */
  async judge(): Promise<{ readonly verdict: Verdict; readonly audit: Audit; readonly accepted: number }> {
    const audit = await auditUntilQuiet(this.stack);
    const accepted = this.all.turns.length + this.all.runs.length;
    return { audit, accepted, verdict: checkCommands(this.all, await readFacts(this.stack), SWEEP_ENDS) };
  }

  async close(): Promise<void> {
    await this.stack.stop();
    this.plan.remove();
    this.oversized.remove();
  }

  private async breakAt({ point, fault, stoppedMs }: SweepCase): Promise<void> {
    this.plan.arm(point, fault === 'stop' ? 'stop' : 'kill9');
    const pid = await this.plan.waitForHit();
    if (fault === 'stop') {
      await letTimePass(stoppedMs);
      process.kill(pid, 'SIGCONT');
    }
    if (fault === 'kill9 twice') {
      this.plan.arm(point, 'kill9');
      await this.plan.waitForHit();
    }
  }

  /** Repeats the job until the fault is over: not every round of a job reaches each failpoint. */
  private async sendUntil(isOver: () => boolean, job: Job, name: string): Promise<Commands> {
    const sent: Commands = { turns: [], runs: [] };
    for (let round = 1; round === 1 || !isOver(); round++) {
      const prefix = `${name}-${round}`;
      if (job === 'run' || job === 'cancel') sent.runs.push(...(await this.startRuns(prefix, job)));
      else if (job === 'agents') await this.liveTrees(prefix);
      else if (job === 'approval') sent.turns.push(...(await this.sendGuardedTurns(prefix)));
      else if (job === 'oversized')
        sent.turns.push(...(await this.sendTurns(prefix, OVERSIZED_AGENT, OVERSIZED_SESSIONS)));
      else sent.turns.push(...(await this.sendTurns(prefix)));
    }
    return sent;
  }

  private startRuns(prefix: string, job: 'run' | 'cancel'): Promise<EndedRun[]> {
    const nextGateway = rotateGateways(this.stack);
    const start = (key: string): Promise<EndedRun> => {
      const inputs = { [RUN_KEY_INPUT]: key };
      return runToEnd(nextGateway, { key, workflow: WORKFLOW, inputs, cancel: job === 'cancel' });
    };
    return Promise.all(Array.from({ length: RUNS }, (_, i) => start(`${prefix}-${i}`)));
  }

  private async liveTrees(prefix: string): Promise<void> {
    const nextGateway = rotateGateways(this.stack);
    const keys = Array.from({ length: TREES }, (_, i) => `${prefix}-${i}`);
    const trees = await Promise.all(keys.map((key) => liveTree(nextGateway, key)));
    const faults = await findTreeFaults(this.stack, trees);
    if (faults.length > 0) throw new Error(faults.join('\n'));
  }

  private sendTurns(prefix: string, agent?: string, sessions = SESSIONS): Promise<SentTurn[]> {
    const nextGateway = rotateGateways(this.stack);
    const send = (i: number): Promise<SentTurn> => {
      const gateway = createReconnectingClient(() => `${nextGateway().replace(/^http/, 'ws')}/ws`);
      const key = `${prefix}-${i}`;
      // First turns of a session reserve by request, and later ones in their commit.
      const peer = i % 2 === 0 ? `p${i}` : key;
      const command = { key, peer, content: `/tool echo {"of":"${key}"}` };
      return sendTurn(gateway, command, undefined, { agent }).finally(() => gateway.disconnect());
    };
    return Promise.all(Array.from({ length: sessions }, (_, i) => send(i)));
  }

  private async sendGuardedTurns(prefix: string): Promise<SentTurn[]> {
    let isOver = false;
    const [root = '', ...descendants] = this.guarded;
    const answering = answerApprovals(rotateGateways(this.stack), root, () => isOver);
    const turns = await this.sendTurns(prefix, descendants.at(-1)).finally(() => (isOver = true));
    const places = [...(await answering)].filter((place) => place !== this.guarded.join(' '));
    if (places.length > 0) throw new Error(`an approval was listed at ${places.join(', at ')}`);
    return turns;
  }
}
