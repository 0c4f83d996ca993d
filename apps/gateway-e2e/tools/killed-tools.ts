import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connectClient } from '@antiphon/testing/client';
import { startMockModel } from '@antiphon/testing/providers';
import type { MockModel } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { startStack } from '@antiphon/testing/stack';
import type { SeededRandom } from '@antiphon/testing/load';
import { waitForValue, readEvents } from '../stack-under-test.js';
import type { LoggedEvent } from '../stack-under-test.js';
import { TARGET_HOST, startCountingTarget } from './counting-target.js';
import type { CountingTarget } from './counting-target.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** Of each kind several plug-ins, because each may ask for sixty pages a minute. */
const ONCE = ['once-a', 'once-b', 'once-c'];
const SAME = ['same-a', 'same-b', 'same-c'];
const TOOLS = [...ONCE, ...SAME];

/**
 * Where a process dies: at a failpoint when it comes by it the nth time, or while the target acts
 * for the nth time.
 */
export type Kill =
  | { readonly at: string; readonly nth: number }
  | { readonly during: 'agent' | 'sandbox'; readonly nth: number };

export interface AskedTool {
  readonly name: string;
  readonly input: Readonly<Record<string, string>>;
}

export interface KilledTools {
  readonly stack: TestStack;
  readonly target: CountingTarget;
  readonly mock: MockModel;
  /**
   * Has the model ask for so many calls in one step, or for these, under these kills; the turn's
   * events once it has ended.
   */
  turn(
    calls: number | readonly AskedTool[],
    kills: readonly Kill[],
  ): Promise<{ readonly events: readonly LoggedEvent[]; readonly killed: number }>;
  close(): Promise<void>;
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

/** Of a turn of so many calls: one death at a named step, and one while the target is at work. */
export const killsOf = (chance: SeededRandom, calls: number): Kill[] => {
  const at = chance.pick(POINTS);
  return [
    { at, nth: ONCE_A_STEP.has(at) ? 1 : 1 + chance.below(calls - 2) },
    { during: chance.pick<'agent' | 'sandbox'>(['agent', 'sandbox']), nth: 1 + chance.below(calls - 2) },
  ];
};

const OUTCOME = /^ToolCall(Completed|Failed|Unknown)$/;

/**
 * How these calls ended, and how often their target acted for them; throws when one has not ended
 * once, or acted twice and may not.
 */
export const tallyOf = (log: readonly LoggedEvent[], target: CountingTarget): Record<string, number> => {
  const tally: Record<string, number> = {};
  for (const { data } of log.filter(({ type }) => type === 'ToolCallRequested')) {
    const ends = log.filter((event) => OUTCOME.test(event.type) && event.data['callId'] === data['callId']);
    const [outcome = '', ...more] = ends.map(({ type }) => type);
    const acted = target.asked.get(String(data['idempotencyKey'])) ?? 0;
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
 * `http-get` itself, and the same without saying that it is idempotent: a key of the same length
 * that nobody reads.
 */
const modules = (): { readonly same: Buffer; readonly once: Buffer } => {
  const build = join(ROOT, 'plugins/build.mjs');
  execFileSync(process.execPath, [build]);
  execFileSync(process.execPath, [build, join(ROOT, 'examples/plugins/primes')]);
  const same = readFileSync(join(ROOT, 'plugins/dist/http-get.wasm'));
  const once = Buffer.from(same);
  utf16('"idempotenT":true}').copy(once, once.indexOf(utf16('"idempotent":true}')));
  return { same, once };
};

const configOf = (mockUrl: string, folder: string): string => {
  const { same, once } = modules();
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

const createPlan = (folder: string) => {
  const path = join(folder, 'plan');
  return {
    path,
    arm: (kill: { readonly at: string; readonly nth: number }): void => {
      rmSync(`${path}.hit`, { force: true });
      writeFileSync(`${path}.next`, `${kill.at}:${kill.nth}:kill9`);
      renameSync(`${path}.next`, path);
    },
    /** Whether a process died of it; if none came by so often, it is taken back. */
    disarm: (): boolean => {
      rmSync(path, { force: true });
      return existsSync(`${path}.hit`);
    },
  };
};

const killNow = (stack: TestStack, service: 'agent' | 'sandbox'): boolean => {
  const pid = stack.stackJson().services[service][0]?.pid;
  if (!pid) return false;
  process.kill(pid, 'SIGKILL');
  return true;
};

/** So many calls that act on the target, of each kind of tool in turn. */
const acting = (of: string, calls: number): AskedTool[] =>
  Array.from({ length: calls }, (_, i) => ({
    name: TOOLS[i % TOOLS.length] ?? '',
    input: { url: `http://${TARGET_HOST}/act?of=${encodeURIComponent(of)}&n=${i}` },
  }));

/** A stack whose tools act on a target over HTTP, and whose processes die when they are told to. */
export const startKilledTools = async (): Promise<KilledTools> => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-killed-'));
  const target = await startCountingTarget();
  let wanted: number | readonly AskedTool[] = 0;
  const mock = await startMockModel(({ toolResults, user }) =>
    toolResults.length > 0
      ? { text: ['all done'] }
      : {
          tools: (typeof wanted === 'number' ? acting(user, wanted) : wanted).map((asked, i) => ({
            ...asked,
            id: `call_${i}`,
          })),
        },
  );
  const plan = createPlan(folder);
  const stack = await startStack({
    config: configOf(mock.url, folder),
    env: {
      E2E_PROVIDER_KEY: 'sk-test',
      FAILPOINTS: `@${plan.path}`,
      NODE_OPTIONS: `--import ${target.preload}`,
    },
  });
  let turns = 0;

  const turn: KilledTools['turn'] = async (calls, kills) => {
    wanted = calls;
    let killed = 0;
    let acts = 0;
    target.onAct = () => {
      acts++;
      for (const kill of kills)
        if ('during' in kill && kill.nth === acts && killNow(stack, kill.during)) killed++;
    };
    const armed = kills.find((kill) => 'at' in kill);
    if (armed && 'at' in armed) plan.arm(armed);
    const client = await connectClient(stack.wsUrl);
    const peer = `p${++turns}`;
    const stream = client.stream('chat.send', {
      channel: 'test',
      account: 'kills',
      peer,
      content: `do ${peer}`,
    });
    const { turnId } = (await stream.waitFor('accepted', ({ event }) => event === 'accepted')).data as {
      turnId: string;
    };
    const all = await waitForValue(
      `the end of turn ${turnId}`,
      async () => {
        const events = (await readEvents(stack)).filter(({ data }) => data['turnId'] === turnId);
        return events.some(({ type }) => /^Turn(Completed|Failed|Cancelled)$/.test(type))
          ? events
          : undefined;
      },
      120_000,
    );
    if (plan.disarm()) killed++;
    await client.close();
    return { events: all, killed };
  };
  return {
    stack,
    target,
    mock,
    turn,
    close: async () => {
      await stack.stop();
      await mock.close();
      target.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
