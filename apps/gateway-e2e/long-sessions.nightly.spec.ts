import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { connectClient, textOf, type SocketClient } from '@antiphon/testing/client';
import { until } from '@antiphon/testing';
import { HISTORY_BYTES, auditUntilQuiet, readHistories } from '@antiphon/testing/faults';
import { percentile } from '@antiphon/testing/load';
import { startMockModel, type MockModel, type MockScript } from '@antiphon/testing/providers';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import { CANARY_KEY, twoVendorConfig } from './stack-under-test.js';

jest.setTimeout(1_800_000);

const TURNS = Number(process.env['ANTIPHON_LONG_TURNS'] ?? 10_000);
/** So many turns are compared, early in the session and at its end. */
const WINDOW = Math.min(500, Math.floor(TURNS / 4));
/** A session is young for so many turns. */
const YOUNG = 25;
const CALLS = 100;
const CALLS_A_STEP = 2;
/** Characters of what each call is given, and gives back; a token is about four. */
const CALL_CHARS = 8_500;

let script: MockScript;
let mock: MockModel;
let stack: TestStack;
let client: SocketClient;

const LIMITS = `max_iterations = 100

[memory]
context_tokens = 500000
`;

beforeAll(async () => {
  mock = await startMockModel((request) => script(request));
  const config = twoVendorConfig(mock.url).trimEnd();
  stack = await startStack({ config: `${config}\n${LIMITS}`, env: { E2E_PROVIDER_KEY: CANARY_KEY } });
  client = await connectClient(stack.wsUrl);
});
afterAll(async () => {
  await client?.close();
  await stack?.stop();
  await mock?.close();
});

const report = (figures: string): void => void process.stdout.write(`${figures}\n`);
const say = (peer: string, content: string) =>
  client.stream('chat.send', { channel: 'test', account: 'long', peer, content, agent: 'gpt' });
const statusOf = (frames: readonly { data: unknown }[]) => (frames.at(-1)?.data as { status: string }).status;

describe('a long turn', () => {
  it(`of ${CALLS} tool calls, over 200,000 tokens of context, completes`, async () => {
    const words = 'tool '.repeat(CALL_CHARS / 5);
    script = ({ toolResults }) =>
      toolResults.length >= CALLS
        ? { text: ['done after ', `${toolResults.length}`] }
        : {
            tools: Array.from({ length: CALLS_A_STEP }, (_, nth) => {
              const id = `call_${toolResults.length + nth}`;
              return { id, name: 'echo', input: { id, words } };
            }),
          };
    const askedAt = performance.now();
    const frames = await say('tools', 'go').done();
    const last = mock.calls.at(-1)?.seen.body;
    const chars = JSON.stringify(last).length;
    report(
      `${CALLS} tool calls in ${Math.round(performance.now() - askedAt)} ms; the last request: ${chars} characters`,
    );
    expect([textOf(frames), statusOf(frames)]).toEqual([`done after ${CALLS}`, 'completed']);
    expect(frames.filter(({ event }) => event === 'tool_result')).toHaveLength(CALLS);
    expect(chars).toBeGreaterThan(4 * 200_000);
  });
});

describe('a long session', () => {
  /** One turn, ms. */
  const timed = async (peer: string, content: string): Promise<number> => {
    const askedAt = performance.now();
    const frames = await say(peer, content).done();
    if (statusOf(frames) !== 'completed') throw new Error(`"${content}" ended ${statusOf(frames)}`);
    return performance.now() - askedAt;
  };
  const message = (nth: number): string => `message ${nth}: my number is ${nth}`;

  /** The session's turns `first` to `last`, by turns with those of sessions that are young: the machine's moods come to both. */
  const compare = async (first: number, last: number) => {
    const own: number[] = [];
    const young: number[] = [];
    for (let nth = first; nth <= last; nth++) {
      const [peer, isNew] = [
        `young-${Math.floor((nth - first) / YOUNG)}-${first}`,
        (nth - first) % YOUNG === 0,
      ];
      const besides = await timed(peer, message(nth));
      // The first one begins a session as well.
      if (!isNew) young.push(besides);
      own.push(await timed('turns', message(nth)));
    }
    const p50 = percentile(own, 0.5);
    report(
      `turns ${first} to ${last}: p50 ${p50.toFixed(1)} ms, p95 ${percentile(own, 0.95).toFixed(1)} ms; ` +
        `of young sessions p50 ${percentile(young, 0.5).toFixed(1)} ms, p95 ${percentile(young, 0.95).toFixed(1)} ms`,
    );
    return p50 / percentile(young, 0.5);
  };

  it(`of ${TURNS} turns: the last ones take as long as the first ones`, async () => {
    script = ({ user }) => ({ text: ['You said: ', user] });
    for (let nth = 1; nth <= 100; nth++) await timed('turns', message(nth));
    const early = await compare(101, 100 + WINDOW);
    for (let nth = 101 + WINDOW; nth <= TURNS - WINDOW; nth++) await timed('turns', message(nth));
    const late = await compare(TURNS - WINDOW + 1, TURNS);
    report(
      `a turn of the session over one of a young session: ${early.toFixed(2)} at ${100 + WINDOW} turns, ` +
        `${late.toFixed(2)} at ${TURNS}: ${(late / early).toFixed(2)} ×`,
    );
    expect(late / early).toBeLessThan(1.25);
  });

  it('goes on in a process that has not seen it, as soon as a young one does', async () => {
    const pid = stack.stackJson().services.agent[0]?.pid ?? 0;
    process.kill(pid, 'SIGKILL');
    await until(() => {
      const [agent] = stack.stackJson().services.agent;
      return agent?.state === 'ready' && agent.pid !== pid;
    }, 60_000);
    const first = await timed('young-0-101', message(1));
    const own = await timed('turns', message(TURNS + 1));
    report(
      `after the agent's death, its first turn: ${own.toFixed(0)} ms; of a young one: ${first.toFixed(0)} ms`,
    );
    expect(own).toBeLessThan(first * 2 + 1_000);
  });

  it('leaves no Temporal history near 2 MB', async () => {
    const { histories, largest } = await readHistories(stack);
    report(`${histories} Temporal histories; the largest: ${JSON.stringify(largest)}`);
    expect(largest.bytes).toBeLessThan(HISTORY_BYTES);
  });

  it('leaves a log that the audit accepts', async () => {
    expect((await auditUntilQuiet(stack)).output).toContain('everything holds');
  });
});
