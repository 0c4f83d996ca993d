import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { IssuedKey, IssuedWorkspace } from '@antiphon/contracts/keys';
import { connectClient, type SocketClient } from '@antiphon/testing/client';
import { sampleHostileTexts } from '@antiphon/testing/hostile-text';
import { checkFigure, percentile, report } from '@antiphon/testing/load';
import type { TestStack } from '@antiphon/testing/stack';
import { letTimePass } from '@antiphon/testing/waits';
import { type HostileRequest, startHostileClient } from './hostile-client.js';
import { createApiCaller, scriptedConfig, startQuickStack } from './stack-under-test.js';

jest.setTimeout(1_800_000);

const TOKEN = 'the-token-of-hostile-texts-has-over-32-characters';
const ROUNDS = Number(process.env['ANTIPHON_HOSTILE_ROUNDS'] ?? 16);
const PING_EVERY_MS = 10;
const PROMISED_P99_MS = 100;
/** A read of the agent passes four processes, of which each one competes with the attack. */
const AGENT_P99_MS = 250;
/** The p99 without an attack shows the noise of the machine. Above this cap it shows nothing. */
const MAX_ALLOWANCE_MS = 250;
const LATER_PINGS = 20;
const MIB = 1024 * 1024;

const CONFIG = scriptedConfig(
  `
[[agents]]
id = "main"
workspace = "*"
provider = "scripted"
tools = ["read", "write", "edit", "search", "ls"]
`,
  `token = "${TOKEN}"

[gateway.limits]
requests_per_second = 0`,
);

let stack: TestStack;
let member: string;
let other: string;
let socket: SocketClient;
let chats: readonly string[];
const call = createApiCaller(() => stack.gatewayUrl);

beforeAll(async () => {
  stack = await startQuickStack(CONFIG);
  const create = async (id: string): Promise<string> =>
    (await call<IssuedWorkspace>(TOKEN, 'POST', '/workspaces', { id, name: id })).body.key.token ?? '';
  const noisy = await create('noisy');
  const issued = await call<IssuedKey>(noisy, 'POST', '/keys', { name: 'member', role: 'member' });
  member = issued.body.token ?? '';
  const start = async (name: string): Promise<string> =>
    (await call<{ id: string }>(member, 'POST', '/workspaces/noisy/chats', { name, agent: 'main' })).body.id;
  chats = await Promise.all(['one', 'two', 'three', 'four'].map(start));
  other = await create('quiet');
  socket = await connectClient(stack.wsUrl, { authorization: `Bearer ${other}` });
  await socket.waitFor('the ack', ({ type }) => type === 'session.ack');
});
afterAll(async () => {
  await socket?.close();
  await stack?.stop();
});

interface Pings {
  /** Requests that the gateway answers by itself. */
  readonly gateway: number[];
  /** Requests that the agent answers. */
  readonly agent: number[];
}

const measurePings = async (hasEnded: (pings: Pings) => boolean): Promise<Pings> => {
  const pings: Pings = { gateway: [], agent: [] };
  const timeOf = async (run: () => Promise<unknown>): Promise<number> => {
    const from = performance.now();
    await run();
    return performance.now() - from;
  };
  while (!hasEnded(pings)) {
    pings.gateway.push(await timeOf(async () => expect(await socket.call('ping')).toBe('pong')));
    pings.agent.push(
      await timeOf(async () => expect((await call(other, 'GET', '/sessions?limit=1')).status).toBe(200)),
    );
    await letTimePass(PING_EVERY_MS);
  }
  return pings;
};

const blanks = (count: number): string => ' '.repeat(count);
/** JSON of 1 MiB with as many values as it can have, as the input of a run. */
const dense = (item: string): string => {
  const [head, tail] = ['{"definition":{"a":[', `${item}]}}`];
  return head + `${item},`.repeat(Math.floor((MIB - 64) / (item.length + 1))) + tail;
};
const put = (path: string, text: string): HostileRequest => ({
  ...{ method: 'PUT', path: `/api/v1/workspaces/noisy/files/${path}`, body: JSON.stringify({ text }) },
});
let said = 0;
/** Sends a message to one of the chats by turns, so that their turns run next to each other. */
const say = (content: string): HostileRequest => ({
  ...{ method: 'POST', path: `/api/v1/workspaces/noisy/chats/${chats[said++ % chats.length]}` },
  body: JSON.stringify({ command: 'message', content }),
});

/** Texts of the kinds that once held a process, by every way in. */
const ATTACKS: readonly (readonly [string, () => HostileRequest[]])[] = [
  [
    'JSON of as many values as 1 MiB can have',
    () =>
      ['[]', '{}', '0', '""', '[[]]', '{"a":0}', '1e308'].map((item) => ({
        ...{ method: 'POST', path: '/api/v1/runs', body: dense(item) },
      })),
  ],
  [
    'plans of 100,000 steps and of long lines',
    () => [
      put('steps.plan.md', '- [ ] a\n'.repeat(100_000)),
      put('blanks.plan.md', `- [ ] a${blanks(400_000)}b\n`),
      { path: '/api/v1/plans?path=steps.plan.md' },
      { path: '/api/v1/plans?path=blanks.plan.md' },
    ],
  ],
  [
    'edits and searches of an agent over long lines',
    () => [
      put('blanks.txt', `a${blanks(400_000)}b`),
      put('.gitignore', `${'a*'.repeat(40)}b\n`.repeat(1_000)),
      say(`/tool edit ${JSON.stringify({ path: 'blanks.txt', old: `c${blanks(1_000)}`, new: 'x' })}`),
      say(`/tool search ${JSON.stringify({ pattern: '(.{1,30}){1,30}[yz]{5}' })}`),
      say('/tool ls {}'),
    ],
  ],
  [
    'random hostile texts as messages and files',
    () =>
      [...sampleHostileTexts(10, 400_000)].flatMap(({ text }, at) => {
        const content = text.slice(0, 250_000);
        return [say(content), put(`random-${at}.md`, content), put(`random-${at}.plan.md`, content)];
      }),
  ],
];

describe('a member who sends hostile texts', () => {
  // @shows review2-2-hostile-texts-in-five-processes
  it.each(ATTACKS)(
    `leaves the pings of another workspace at p99 ≤ ${PROMISED_P99_MS} ms: %s`,
    async (what, requestsOf) => {
      const pids = JSON.stringify(stack.stackJson().services);
      const quiet = await measurePings(({ gateway }) => gateway.length >= 200);
      const requests = Array.from({ length: ROUNDS }, requestsOf).flat();
      const all: Pings = { gateway: [], agent: [] };
      while (all.gateway.length < 300) {
        const client = startHostileClient({ url: stack.gatewayUrl, token: member, requests, parallel: 4 });
        let rest = LATER_PINGS;
        // Turns of the last messages run on when their requests have ended.
        const { gateway, agent } = await measurePings(() => client.hasEnded() && rest-- <= 0);
        all.gateway.push(...gateway);
        all.agent.push(...agent);
        report(`${what}: ${JSON.stringify(await client.statuses)}`);
      }
      expect(JSON.stringify(stack.stackJson().services)).toBe(pids);
      for (const side of ['gateway', 'agent'] as const) {
        const value = percentile(all[side], 0.99);
        const before = percentile(quiet[side], 0.99);
        const promised = side === 'gateway' ? PROMISED_P99_MS : AGENT_P99_MS;
        report(`${what}: ${side}, p99 ${before.toFixed(1)} ms before, ${all[side].length} pings`);
        checkFigure({
          what: `p99 of a ping of the ${side}, next to ${what}`,
          value,
          ...{ unit: 'ms', atMost: promised + Math.min(before, MAX_ALLOWANCE_MS) },
        });
      }
    },
  );
});
