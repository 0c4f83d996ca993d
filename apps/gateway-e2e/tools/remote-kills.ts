import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { REMOTE_FAILPOINTS } from '@antiphon/kernel';
import { isTurnEnd } from '@antiphon/contracts/agent';
import { connectClient } from '@antiphon/testing/client';
import { startMockModel } from '@antiphon/testing/providers';
import type { MockModel } from '@antiphon/testing/providers';
import { startStack } from '@antiphon/testing/stack';
import type { TestStack } from '@antiphon/testing/stack';
import { FailpointPlan } from '../faults/failpoint-plan.js';
import { readEvents, waitForAccepted, waitForValue } from '../stack-under-test.js';
import type { LoggedEvent } from '../stack-under-test.js';
import { startCountingTarget } from './counting-target.js';
import type { CountingTarget } from './counting-target.js';
import { RemoteWorker } from './remote-worker.js';

const SERVICES = ['agent', 'gateway', 'sandbox'] as const;
type Service = (typeof SERVICES)[number];

/** Kills a process at a failpoint, or a process or program while the target acts. */
export type RemoteKill = { readonly at: string } | { readonly during: Service | 'worker' };

const POINTS = [
  ...['agent.tool.requested', 'agent.tool.claimed', 'agent.tool.dispatched', 'agent.tool.answered'],
  ...['sandbox.call.taken', 'work.call.permitted', ...REMOTE_FAILPOINTS, 'sandbox.call.returned'],
];

/** Kills of a sweep, in turn. The program is killed as often as the services together. */
export const REMOTE_KILLS: readonly RemoteKill[] = [
  ...POINTS.map((at) => ({ at })),
  ...SERVICES.flatMap((during): RemoteKill[] => [{ during }, { during: 'worker' }]),
];

const TOOLS = ['once', 'again'];
const CALLS = 4;

const configOf = (mockUrl: string): string => `
[gateway]
port = 0

[[providers]]
name = "anthropic"
kind = "anthropic"
base_url = "${mockUrl}"
api_key_env = "E2E_PROVIDER_KEY"

[[agents]]
id = "main"
provider = "anthropic"
model = "claude-sonnet-4"
tools = ${JSON.stringify(TOOLS)}
`;

/** A stack whose tools are served by two programs, and whose processes are killed during calls. */
export class RemoteKills {
  private workers: RemoteWorker[] = [];
  private turns = 0;
  private isClosed = false;
  killed = 0;

  private constructor(
    private readonly folder: string,
    private readonly plan: FailpointPlan,
    readonly target: CountingTarget,
    private readonly mock: MockModel,
    readonly stack: TestStack,
  ) {}

  static async start(): Promise<RemoteKills> {
    const folder = mkdtempSync(join(tmpdir(), 'antiphon-remote-kills-'));
    const target = await startCountingTarget();
    const mock = await startMockModel(({ toolResults, user }) =>
      toolResults.length > 0
        ? { text: ['all done'] }
        : {
            tools: Array.from({ length: CALLS }, (_, n) => ({
              ...{ id: `call_${n}`, name: TOOLS[n % TOOLS.length] ?? '' },
              input: { n, of: user },
            })),
          },
    );
    const plan = new FailpointPlan();
    const stack = await startStack({
      ...{ shareDatabase: true, config: configOf(mock.url) },
      env: { E2E_PROVIDER_KEY: 'sk-test', FAILPOINTS: plan.variable },
    });
    const kills = new RemoteKills(folder, plan, target, mock, stack);
    await Promise.all([kills.keepWorker(0), kills.keepWorker(1)]);
    return kills;
  }

  /** Makes one turn of four calls, with one kill. Returns its events once it has ended. */
  async turn(kill: RemoteKill): Promise<readonly LoggedEvent[]> {
    const turn = ++this.turns;
    const nth = 1 + (turn % CALLS);
    let acts = 0;
    let hasKilled = false;
    this.target.onAct = () => {
      if (++acts !== nth || !('during' in kill) || hasKilled) return;
      hasKilled = this.kill(kill.during, turn);
    };
    const client = await waitForValue('a gateway', () =>
      connectClient(this.stack.wsUrl).catch(() => undefined),
    );
    const stream = client.stream('chat.send', {
      ...{ channel: 'test', account: 'remote', peer: `p${turn}`, content: `do ${turn}` },
    });
    if ('at' in kill) this.plan.arm(kill.at, 'kill9', kill.at === 'agent.tool.requested' ? 1 : nth);
    const { turnId } = await waitForAccepted(stream);
    const events = await this.waitForEnd(turnId);
    if (this.plan.disarm()) hasKilled = true;
    if (hasKilled) this.killed++;
    await client.close();
    return events;
  }

  async close(): Promise<void> {
    this.isClosed = true;
    for (const worker of this.workers) await worker.end();
    await this.stack.stop();
    await this.mock.close();
    this.target.close();
    this.plan.remove();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private kill(what: Service | 'worker', turn: number): boolean {
    if (what === 'worker') {
      void this.workers[turn % 2]?.end();
      return true;
    }
    const pid = this.stack.stackJson().services[what][0]?.pid;
    if (!pid) return false;
    process.kill(pid, 'SIGKILL');
    return true;
  }

  /** Starts a program, and starts it again each time it ends. */
  private async keepWorker(index: number): Promise<void> {
    const worker = await RemoteWorker.start({
      ...{ ANTIPHON_URL: this.stack.gatewayUrl, WORKER_NAME: `w${index}`, WORKER_WAIT_MS: '20000' },
      ...{ WORKER_ACTS: join(this.folder, 'acts'), WORKER_TARGET: this.target.url },
    });
    this.workers[index] = worker;
    void worker.ended.then(() => {
      if (!this.isClosed) void this.keepWorker(index);
    });
  }

  private waitForEnd(turnId: string): Promise<readonly LoggedEvent[]> {
    return waitForValue(
      `the end of turn ${turnId}`,
      async () => {
        // The gateway may be the process that was killed.
        const all = await readEvents(this.stack).catch((): LoggedEvent[] => []);
        const events = all.filter(({ data }) => data['turnId'] === turnId);
        return events.some(({ type }) => isTurnEnd(type)) ? events : undefined;
      },
      120_000,
    );
  }
}
