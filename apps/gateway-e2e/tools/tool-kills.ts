import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isTurnEnd } from '@antiphon/contracts/agent';
import { connectClient } from '@antiphon/testing/client';
import { startMockModel } from '@antiphon/testing/providers';
import type { MockModel } from '@antiphon/testing/providers';
import type { StartStackOptions, TestStack } from '@antiphon/testing/stack';
import { startStack } from '@antiphon/testing/stack';
import type { SeededRandom } from '@antiphon/testing/load';
import { FailpointPlan } from '../faults/failpoint-plan.js';
import { readEvents, waitForAccepted, waitForValue } from '../stack-under-test.js';
import type { LoggedEvent } from '../stack-under-test.js';
import { TARGET_HOST, startCountingTarget } from './counting-target.js';
import type { CountingTarget } from './counting-target.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** Several plug-ins of each kind, because each one may make sixty requests a minute. */
const ONCE = ['once-a', 'once-b', 'once-c'];
const SAME = ['same-a', 'same-b', 'same-c'];
const TOOLS = [...ONCE, ...SAME];

/**
 * Kills a process when it reaches a failpoint the nth time, or while the target acts the nth time.
 */
export type Kill =
  | { readonly at: string; readonly nth: number }
  | { readonly during: 'agent' | 'sandbox'; readonly nth: number };

export interface ToolRequest {
  readonly name: string;
  readonly input: Readonly<Record<string, string>>;
}

export interface KilledTurn {
  readonly events: readonly LoggedEvent[];
  readonly killed: number;
}

const POINTS = [
  'agent.tool.requested',
  'agent.tool.claimed',
  'agent.tool.dispatched',
  'agent.tool.answered',
  'agent.tool.recorded',
  'sandbox.call.taken',
  'sandbox.call.returned',
] as const;
const ONCE_A_STEP = new Set<string>(['agent.tool.requested', 'agent.tool.recorded']);

/** Chooses the kills of a turn: one at a failpoint, and one while the target acts. */
export const chooseKills = (random: SeededRandom, calls: number): Kill[] => {
  const at = random.pick(POINTS);
  return [
    { at, nth: ONCE_A_STEP.has(at) ? 1 : 1 + random.below(calls - 2) },
    { during: random.pick<'agent' | 'sandbox'>(['agent', 'sandbox']), nth: 1 + random.below(calls - 2) },
  ];
};

const OUTCOME = /^ToolCall(Completed|Failed|Unknown)$/;

/**
 * Counts calls by their outcome and by how often their target acted. Throws when a call has not
 * exactly one outcome, or acted twice though it is not idempotent.
 */
export const countOutcomes = (
  log: readonly LoggedEvent[],
  target: CountingTarget,
): Record<string, number> => {
  const tally: Record<string, number> = {};
  for (const { data } of log.filter(({ type }) => type === 'ToolCallRequested')) {
    const ends = log.filter((event) => OUTCOME.test(event.type) && event.data['callId'] === data['callId']);
    const [outcome = '', ...more] = ends.map(({ type }) => type);
    const acted = target.requests.get(String(data['idempotencyKey'])) ?? 0;
    const name = `${data['idempotent'] === true ? 'idempotent' : 'once'} ${outcome}, acted ${acted}`;
    const wrong =
      outcome === '' ||
      more.length > 0 ||
      (data['idempotent'] === false && acted > 1) ||
      (outcome === 'ToolCallCompleted' && acted === 0);
    if (wrong) throw new Error(`call ${String(data['callId'])}: ${name}${more.join(' and ')}`);
    tally[name] = (tally[name] ?? 0) + 1;
  }
  return tally;
};

const utf16 = (text: string): Buffer => Buffer.from(text, 'utf16le');

/**
 * Builds `http-get`, and a copy that does not declare itself idempotent. In the copy, another key
 * of the same length replaces the declaration's.
 */
const buildModules = (): { readonly same: Buffer; readonly once: Buffer } => {
  const build = join(ROOT, 'plugins/build.mjs');
  execFileSync(process.execPath, [build]);
  execFileSync(process.execPath, [build, join(ROOT, 'examples/plugins/primes')]);
  const same = readFileSync(join(ROOT, 'plugins/dist/http-get.wasm'));
  const once = Buffer.from(same);
  utf16('"idempotenT":true}').copy(once, once.indexOf(utf16('"idempotent":true}')));
  return { same, once };
};

const configOf = (mockUrl: string, folder: string): string => {
  const { same, once } = buildModules();
  for (const name of TOOLS) writeFileSync(join(folder, `${name}.wasm`), ONCE.includes(name) ? once : same);
  const plugin = (name: string): string =>
    `[[plugins]]\nname = "${name}"\npath = "${join(folder, name)}.wasm"\ncapabilities = ["http:${TARGET_HOST}"]\n`;
  return `
[gateway]
port = 0

[[providers]]
name = "anthropic"
kind = "anthropic"
base_url = "${mockUrl}"
api_key_env = "E2E_PROVIDER_KEY"

[[agents]]
id = "main"
name = "Main"
provider = "anthropic"
model = "claude-sonnet-4"
tools = ${JSON.stringify([...TOOLS, 'primes'])}

[[providers]]
name = "scripted"
kind = "scripted"

[[agents]]
id = "careful"
provider = "scripted"
tools = ["calculator"]

[[agents.approvals]]
tool = "calculator"

[[plugins]]
name = "primes"
path = "${join(ROOT, 'plugins/dist/primes.wasm')}"

${TOOLS.map(plugin).join('\n')}`;
};

const killNow = (stack: TestStack, service: 'agent' | 'sandbox'): boolean => {
  const pid = stack.stackJson().services[service][0]?.pid;
  if (!pid) return false;
  process.kill(pid, 'SIGKILL');
  return true;
};

/** Builds calls that act on the target, with each tool in turn. */
const actingCalls = (turn: string, calls: number): ToolRequest[] =>
  Array.from({ length: calls }, (_, i) => ({
    name: TOOLS[i % TOOLS.length] ?? '',
    input: { url: `http://${TARGET_HOST}/act?of=${encodeURIComponent(turn)}&n=${i}` },
  }));

/**
 * A stack whose tools act on a target over HTTP, and whose processes are killed during the calls.
 */
export class ToolKills {
  private requested: number | readonly ToolRequest[] = 0;
  private turns = 0;

  private constructor(
    private readonly folder: string,
    private readonly plan: FailpointPlan,
    readonly target: CountingTarget,
    readonly mock: MockModel,
    readonly stack: TestStack,
  ) {}

  static async start(more: Pick<StartStackOptions, 'scale' | 'watchesHealth'> = {}): Promise<ToolKills> {
    const folder = mkdtempSync(join(tmpdir(), 'antiphon-tool-kills-'));
    const target = await startCountingTarget();
    const tests: { instance?: ToolKills } = {};
    const mock = await startMockModel(({ toolResults, user }) =>
      toolResults.length > 0
        ? { text: ['all done'] }
        : { tools: tests.instance?.toolCalls(user).map((call, i) => ({ ...call, id: `call_${i}` })) ?? [] },
    );
    const plan = new FailpointPlan();
    const stack = await startStack({
      ...more,
      shareDatabase: true,
      config: configOf(mock.url, folder),
      env: {
        E2E_PROVIDER_KEY: 'sk-test',
        FAILPOINTS: plan.variable,
        ANTIPHON_NODE_OPTIONS: `--import ${target.preload}`,
      },
    });
    return (tests.instance = new ToolKills(folder, plan, target, mock, stack));
  }

  /**
   * Makes the model request so many calls in one step, or the given ones, and kills processes
   * during them. Returns the turn's events once it has ended.
   */
  async turn(calls: number | readonly ToolRequest[], kills: readonly Kill[]): Promise<KilledTurn> {
    this.requested = calls;
    let killed = 0;
    let acts = 0;
    this.target.onAct = () => {
      acts++;
      for (const kill of kills)
        if ('during' in kill && kill.nth === acts && killNow(this.stack, kill.during)) killed++;
    };
    for (const kill of kills) if ('at' in kill) this.plan.arm(kill.at, 'kill9', kill.nth);
    const client = await connectClient(this.stack.wsUrl);
    const peer = `p${++this.turns}`;
    const address = { channel: 'test', account: 'kills', peer };
    const stream = client.stream('chat.send', { ...address, content: `do ${peer}` });
    const { turnId } = await waitForAccepted(stream);
    const events = await this.waitForEnd(turnId);
    if (this.plan.disarm()) killed++;
    await client.close();
    return { events, killed };
  }

  async close(): Promise<void> {
    await this.stack.stop();
    await this.mock.close();
    this.target.close();
    this.plan.remove();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private toolCalls(user: string): readonly ToolRequest[] {
    return typeof this.requested === 'number' ? actingCalls(user, this.requested) : this.requested;
  }

  private waitForEnd(turnId: string): Promise<LoggedEvent[]> {
    return waitForValue(
      `the end of turn ${turnId}`,
      async () => {
        const events = (await readEvents(this.stack)).filter(({ data }) => data['turnId'] === turnId);
        return events.some(({ type }) => isTurnEnd(type)) ? events : undefined;
      },
      120_000,
    );
  }
}
