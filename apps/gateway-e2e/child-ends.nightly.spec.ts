import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { auditUntilQuiet } from '@antiphon/testing/faults';
import { checkFigure, percentile, report } from '@antiphon/testing/load';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import { letTimePass } from '@antiphon/testing/waits';
import { CANARY_KEY, readEvents, twoVendorConfig, waitForValue } from './stack-under-test.js';

const CHILDREN = Number(process.env['ANTIPHON_CHILDREN'] ?? 1_000);
const PARENTS = Number(process.env['ANTIPHON_PARENTS'] ?? 8);
const KILL_EVERY_MS = 4_000;
/** Children of a parent that live at the same time. */
const LANES = 4;
const SERVICES = ['agent', 'metering', 'gateway', 'memory', 'sandbox'] as const;
/** Time within which every request has an answer, although services die. */
const REQUEST_MS = 120_000;

jest.setTimeout(3_000_000);

let mock: MockModel;
let stack: TestStack;
beforeAll(async () => {
  mock = await startMockModel(({ user, toolResults }) =>
    user.startsWith('work') && toolResults.length === 0
      ? { tools: [{ id: randomUUID(), name: 'echo', input: { text: user } }] }
      : { text: [`done: ${user.slice(0, 20)}`] },
  );
  stack = await startStack({
    config: twoVendorConfig(mock.url),
    env: { E2E_PROVIDER_KEY: CANARY_KEY, ANTIPHON_LOG_ROOT_EVERY_S: '1' },
    scale: { agent: 2 },
  });
});
afterAll(async () => {
  await stack?.stop();
  await mock?.close();
});

type Json = Readonly<Record<string, unknown>>;

/** Sends a request until it has an answer: a client of a dead service repeats it with its key. */
const call = async (method: string, path: string, body?: Json): Promise<Json> => {
  const headers = {
    'idempotency-key': randomUUID(),
    ...(body ? { 'content-type': 'application/json' } : {}),
  };
  const deadline = Date.now() + REQUEST_MS;
  for (;;) {
    const sent = fetch(`${stack.gatewayUrl}/api/v1${path}`, {
      ...{ method, headers, signal: AbortSignal.timeout(15_000) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const answer = await sent.then(
      async (response) => ({ status: response.status, json: (await response.json()) as Json }),
      () => null,
    );
    if (answer && answer.status < 300) return answer.json;
    if (answer && answer.status < 500 && answer.status !== 429)
      throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.json)}`);
    if (Date.now() > deadline) throw new Error(`${method} ${path} has no answer in ${REQUEST_MS} ms`);
    await letTimePass(200);
  }
};

/** Lets an agent do a task, and waits for its end. */
const doTask = async (agent: string, prompt: string): Promise<void> => {
  const { id } = await call('POST', '/tasks', { prompt, agent });
  await waitForValue(
    `a task of ${agent}`,
    async () => ((await call('GET', `/tasks/${String(id)}`))['endedAt'] === null ? undefined : true),
    REQUEST_MS,
  );
};

/** Spawns children of a parent one after another. Each works once, and is ended. */
const raiseChildren = async (parent: string, children: string[]): Promise<void> => {
  for (let id = children.shift(); id !== undefined; id = children.shift()) {
    await call('POST', '/agents', { id, name: id, base: 'gpt', parent, whenFull: 'queue' });
    await doTask(id, `work of ${id}`);
    await call('DELETE', `/agents/${id}`);
  }
};

/** Kills each service in turn, once at least, until `isOver`. Returns the number of kills. */
const killInTurn = async (isOver: () => boolean): Promise<number> => {
  for (let kills = 0; ; kills++) {
    await letTimePass(KILL_EVERY_MS);
    if (isOver() && kills >= SERVICES.length) return kills;
    const living = stack.stackJson().services[SERVICES[kills % SERVICES.length] ?? 'agent'];
    const pids = living.flatMap(({ pid }) => (pid ? [pid] : []));
    const pid = pids[kills % pids.length];
    try {
      if (pid) process.kill(pid, 'SIGKILL');
    } catch (error) {
      // The process has just ended.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
};

interface ReceivedEnd {
  readonly childId: string;
  readonly readerId: string;
  readonly afterMs: number;
}

/** Reads which agent has which end in which context, from the log. */
const readReceived = async (): Promise<ReceivedEnd[]> => {
  const readers = new Map<string, string>();
  for (const { streamId, data } of await readEvents(stack, { type: 'SessionStarted' }))
    readers.set(streamId, String(data['agentId']));
  const received = await readEvents(stack, { type: 'MessagesReceived' });
  return received.flatMap(({ streamId, data }) =>
    (data['messages'] as { type: string; content: Json; sentAt: string }[])
      .filter(({ type }) => type === 'ChildEnded')
      .map(({ content, sentAt }) => ({
        childId: String(content['agentId']),
        readerId: readers.get(streamId) ?? '',
        afterMs: Date.parse(String(data['receivedAt'])) - Date.parse(sentAt),
      })),
  );
};

describe('the ends of children, while each service is killed in turn', () => {
  // @shows agents-A5
  it('are in one context of their parent each, and in no other', async () => {
    const parents = Array.from({ length: PARENTS }, (_, index) => `parent-${index}`);
    const parentOf = new Map<string, string>();
    for (let index = 0; index < CHILDREN; index++)
      parentOf.set(`kid-${index}`, parents[index % PARENTS] ?? '');
    for (const id of parents) await call('POST', '/agents', { id, name: id, base: 'gpt' });

    let isOver = false;
    const killing = killInTurn(() => isOver);
    let isReading = true;
    const read = async (parent: string): Promise<void> => {
      while (isReading) await doTask(parent, 'read');
    };
    const reading = Promise.all(parents.map(read));
    reading.catch(() => undefined);
    const raising = parents.flatMap((parent) => {
      const children = [...parentOf].flatMap(([id, of]) => (of === parent ? [id] : []));
      return Array.from({ length: LANES }, () => raiseChildren(parent, children));
    });
    await Promise.all(raising).finally(() => (isOver = true));
    const kills = await killing;
    const received = await waitForValue(
      'every end in a context',
      async () => {
        const all = await readReceived().catch(() => []);
        return new Set(all.map(({ childId }) => childId)).size === CHILDREN ? all : undefined;
      },
      REQUEST_MS,
    ).catch(() => readReceived());
    isReading = false;
    await reading;

    const seen = new Set(received.map(({ childId }) => childId));
    const wrong = received.filter(({ childId, readerId }) => parentOf.get(childId) !== readerId);
    const p99 = percentile(
      received.map(({ afterMs }) => afterMs),
      0.99,
    );
    report(`p99 from the end of a child to the context of its busy parent: ${Math.round(p99)} ms`);
    checkFigure({ what: `child ends: lost of ${CHILDREN}`, value: CHILDREN - seen.size, atMost: 0 });
    checkFigure({ what: 'child ends: repeated', value: received.length - seen.size, atMost: 0 });
    checkFigure({ what: 'child ends: misdirected', value: wrong.length, atMost: 0 });
    checkFigure({ what: 'child ends: kills of services', value: kills, atLeast: SERVICES.length });
    expect((await auditUntilQuiet(stack)).output).toMatch(/messages-arrive-once/);
    expect((await auditUntilQuiet(stack)).ok).toBe(true);
  });
});
