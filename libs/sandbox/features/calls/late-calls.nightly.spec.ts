import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { AgentConfig } from '@antiphon/config';
import { armFailpoints, sleep } from '@antiphon/kernel';
import { until } from '@antiphon/testing';
import type { EgressPorts } from '../http/fetch-page.js';
import { startSandbox } from '../testing/sandbox.fixture.spec.js';
import type { TestSandbox } from '../testing/sandbox.fixture.spec.js';
import { steadyNow } from './caller-clocks.js';

jest.setTimeout(60_000);

/** The sandbox gives a call up 3.5 s after its caller was last heard. */
const GIVEN_UP_MS = 3_600;

let server: Server;
let respond: RequestListener;
let arrived: number;
let box: TestSandbox;

const egress: EgressPorts = {
  resolve: async () => ['93.184.216.34'],
  dial: () => connect((server.address() as AddressInfo).port, '127.0.0.1'),
};
const rule = { tool: 'hello', ask: 'always', expiresAfterMs: 1_000, escalateAfterMs: null } as const;
const agents = [
  { id: 'careful', tools: ['hello'], approvals: [rule] },
  { id: 'free', tools: ['hello'], approvals: [] },
] as unknown as readonly AgentConfig[];

beforeAll(async () => {
  server = createServer((request, response) => {
    arrived += 1;
    respond(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  box = await startSandbox(
    ['hello', 'fetch-loop', 'fetch-trap', 'fetch-ok', 'loop'],
    { capabilities: ['http:api.example.com'], timeoutMs: 5_000 },
    { egress, agents, cells: 1 },
  );
});
beforeEach(() => {
  arrived = 0;
  respond = (_request, response) => void response.setHeader('content-type', 'text/plain').end('ok');
});
afterAll(async () => {
  await box.close();
  server.close();
});

/** Deadline of a request that was proven `ageMs` ago. */
const proven = (ageMs: number, caller = 'agent-1') => {
  const at = steadyNow() - ageMs;
  return { sentAt: { caller, at }, notAfter: at + 3_000 };
};
const unavailable = (reason: string) => ({
  outcome: 'failed',
  code: 'TOOL.UNAVAILABLE',
  message: expect.stringContaining(reason),
});

describe('a tool call that comes late', () => {
  it('does not run when its deadline has passed', async () => {
    box.sandbox.calls.clocks.observe({ caller: 'agent-1', at: steadyNow() });
    expect(await box.call('hello', {}, { ...proven(0), agentId: 'free' })).toMatchObject({
      outcome: 'completed',
    });
    expect(await box.call('hello', {}, proven(3_100))).toMatchObject(unavailable('after its deadline'));
  });

  it('does not run when this process was suspended after it took the call', async () => {
    armFailpoints((name) => (name === 'sandbox.call.taken' ? sleep(GIVEN_UP_MS) : Promise.resolve()));
    try {
      expect(await box.call('fetch-ok', {}, proven(0))).toMatchObject(unavailable('after its deadline'));
      expect(arrived).toBe(0);
    } finally {
      armFailpoints(null);
    }
  });

  it('does not run when its caller has not asked for it while it waited for a cell', async () => {
    const occupies = box.call('loop', {}, { timeoutMs: GIVEN_UP_MS + 500 });
    const late = box.call('fetch-ok', {}, proven(0));
    expect(await late).toMatchObject(unavailable('gave the call up'));
    expect(arrived).toBe(0);
    await occupies;
  });

  it('runs when its caller has asked for it while it waited for a cell', async () => {
    const occupies = box.call('loop', {}, { timeoutMs: GIVEN_UP_MS + 500 });
    const callId = randomUUID();
    const call = box.call('fetch-ok', {}, { ...proven(0), callId });
    await sleep(2_000);
    await box.sandbox.calls.find({ workspace: 'default', sessionId: randomUUID(), callId });
    expect(await call).toMatchObject({ outcome: 'completed' });
    await occupies;
  });
});

describe('a tool call that reached the outside', () => {
  it.each([
    ['fetch-loop', 'TOOL.TIMEOUT'],
    ['fetch-trap', 'TOOL.TRAP'],
  ])('may have acted when %s fails with %s', async (name, code) => {
    expect(await box.call(name, {}, { timeoutMs: 700 })).toMatchObject({
      outcome: 'failed',
      code,
      mayHaveActed: true,
    });
    expect(arrived).toBe(1);
  });

  it('certainly did not act when it failed without a request', async () => {
    const reply = await box.call('loop', {}, { timeoutMs: 200 });
    expect(reply).toMatchObject({ outcome: 'failed', code: 'TOOL.TIMEOUT' });
    expect(reply).not.toHaveProperty('mayHaveActed');
  });

  it('is cancelled as one that may have acted', async () => {
    respond = () => undefined;
    const callId = randomUUID();
    const reply = box.call('fetch-ok', {}, { callId });
    await until(() => arrived === 1);
    box.cancel(callId);
    expect(await reply).toMatchObject({ code: 'TOOL.CANCELLED', mayHaveActed: true });
  });
});

describe('a tool call without an approval', () => {
  it('is refused for an agent whose rules require one', async () => {
    expect(await box.call('hello', {}, { agentId: 'careful' })).toMatchObject({
      outcome: 'failed',
      code: 'TOOL.DENIED',
      message: expect.stringContaining('needs an approval'),
    });
  });

  it('is refused when it names no agent and any agent requires one', async () => {
    expect(await box.call('hello')).toMatchObject({ code: 'TOOL.DENIED' });
  });

  it('runs for an agent whose rules require none', async () => {
    expect(await box.call('hello', {}, { agentId: 'free' })).toMatchObject({ outcome: 'completed' });
  });
});
