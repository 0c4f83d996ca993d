import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ALL_WORKSPACES, createPool } from '@antiphon/database';
import { connectNats, openJetStreamManager } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import { connectClient } from '@antiphon/testing/client';
import { checkFigure } from '@antiphon/testing/load';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import { readEvents, scriptedConfig, waitForValue } from './stack-under-test.js';

const MESSAGES = 300;
const SESSIONS = 4;
const CONTENT = '漢'.repeat(262_144);
const SERVICES = ['gateway', 'agent', 'metering', 'memory', 'sandbox'] as const;
/** Memory of each service's container, MiB. The rest of it is outside of the heap. */
const CONTAINER_MIB = 512;
const HEAP_MIB = 320;

/** The budget refuses each turn, which is stored all the same: no model has to read the text. */
const CONFIG = scriptedConfig(`
[[agents]]
id = "main"
provider = "scripted"
model = "scripted"

[budgets]
session = 1000
`);

let stack: TestStack;
beforeAll(async () => {
  const env = { NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}`, MALLOC_ARENA_MAX: '2' };
  stack = await startStack({ config: CONFIG, env });
});
afterAll(() => stack?.stop());

const peakMiB = (pid: number): number =>
  Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

const sendAll = async (peer: number): Promise<void> => {
  const client = await connectClient(stack.wsUrl);
  const params = { channel: 'test', account: 'large', peer: `p${peer}`, agent: 'main', content: CONTENT };
  for (let nth = 0; nth < MESSAGES / SESSIONS; nth++) await client.stream('chat.send', params).done();
  await client.close();
};

/** Returns the lags of the relay and of each projection that is not at the head of the log. */
const readLags = async (): Promise<Record<string, number>> => {
  const pool = createPool({ url: stack.databaseUrl, applicationName: 'spec', workspace: ALL_WORKSPACES });
  const link = await connectNats({ ...stack.nats, service: 'operator', logger: silentLogger });
  try {
    const head = Number((await pool.query<{ max: string }>('select max(position) from events')).rows[0]?.max);
    const { rows } = await pool.query<{ name: string; position: string }>(
      'select name, position from projection_checkpoints',
    );
    const manager = await openJetStreamManager(link.connection);
    const { state } = await manager.streams.info('EVENTS');
    const lags = rows.map(({ name, position }) => [name, head - Number(position)] as const);
    const all = [['relay', head - state.last_seq] as const, ...lags];
    return Object.fromEntries(all.filter(([, lag]) => lag > 0));
  } finally {
    await Promise.all([pool.end(), link.drain()]);
  }
};

describe(`${MESSAGES} messages of 262,144 CJK characters`, () => {
  it(`reach every projection and the relay while each service has ${CONTAINER_MIB} MiB`, async () => {
    const before = stack.stackJson().services;
    await Promise.all(Array.from({ length: SESSIONS }, (_, peer) => sendAll(peer)));
    let lags: Record<string, number> = {};
    await waitForValue(
      'lags of 0',
      async () => {
        lags = await readLags();
        return Object.keys(lags).length === 0 ? true : undefined;
      },
      120_000,
    ).catch((error: unknown) => {
      throw new Error(`these stay behind: ${JSON.stringify(lags)}`, { cause: error });
    });
    expect(await readEvents(stack, { type: 'TurnRequested' })).toHaveLength(MESSAGES);
    const after = stack.stackJson().services;
    for (const name of SERVICES) {
      expect(after[name].map(({ pid }) => pid)).toEqual(before[name].map(({ pid }) => pid));
      for (const { pid } of after[name])
        checkFigure({
          ...{ what: `large messages: peak memory of ${name}`, value: peakMiB(pid ?? 0), unit: 'MiB' },
          atMost: CONTAINER_MIB,
        });
    }
  });
});
