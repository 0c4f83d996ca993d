import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { until } from '@antiphon/testing';
import { proven, startCallWorld, unavailable } from '../testing/call-world.fixture.spec.js';
import type { CallWorld } from '../testing/call-world.fixture.spec.js';
import { steadyNow } from './caller-clocks.js';

let world: CallWorld;
beforeAll(async () => {
  world = await startCallWorld();
});
beforeEach(() => world.reset());
afterAll(() => world.close());

describe('a tool call that comes late', () => {
  // @shows review1-11
  it('does not run when its deadline has passed', async () => {
    world.box.sandbox.calls.clocks.observe({ caller: 'agent-1', at: steadyNow() });
    expect(await world.box.call('hello', {}, { ...proven(0), agentId: 'free' })).toMatchObject({
      outcome: 'completed',
    });
    expect(await world.box.call('hello', {}, proven(3_100))).toMatchObject(unavailable('after its deadline'));
  });
});

// @shows review1-12
describe('a tool call that reached the outside', () => {
  it.each([
    ['fetch-loop', 'TOOL.TIMEOUT'],
    ['fetch-trap', 'TOOL.TRAP'],
  ])('may have acted when %s fails with %s', async (name, code) => {
    expect(await world.box.call(name, {}, { timeoutMs: 700 })).toMatchObject({
      outcome: 'failed',
      code,
      mayHaveActed: true,
    });
    expect(world.arrived).toBe(1);
  });

  it('certainly did not act when it failed without a request', async () => {
    const reply = await world.box.call('loop', {}, { timeoutMs: 200 });
    expect(reply).toMatchObject({ outcome: 'failed', code: 'TOOL.TIMEOUT' });
    expect(reply).not.toHaveProperty('mayHaveActed');
  });

  it('is cancelled as one that may have acted', async () => {
    world.respond = () => undefined;
    const callId = randomUUID();
    const reply = world.box.call('fetch-ok', {}, { callId });
    await until(() => world.arrived === 1);
    world.box.cancel(callId);
    expect(await reply).toMatchObject({ code: 'TOOL.CANCELLED', mayHaveActed: true });
  });
});

describe('a tool call that needs the permission of its caller', () => {
  const attempt = () => ({ ...proven(0), attemptId: randomUUID() });
  beforeEach(() => void Object.assign(world.box.permit, { asked: 0, isGranted: true }));

  it('asks once, right before its first request', async () => {
    world.respond = (_request, response) => {
      expect(world.box.permit.asked).toBe(1);
      response.setHeader('content-type', 'text/plain').end('ok');
    };
    expect(await world.box.call('fetch-ok', {}, attempt())).toMatchObject({ outcome: 'completed' });
    expect(world.arrived).toBe(1);
    expect(world.box.permit.asked).toBe(1);
  });

  it('has no effect without it, and may run again', async () => {
    world.box.permit.isGranted = false;
    const callId = randomUUID();
    const reply = await world.box.call('fetch-ok', {}, { ...attempt(), callId });
    expect(reply).toMatchObject(unavailable('before its first effect'));
    expect(reply).not.toHaveProperty('mayHaveActed');
    expect(world.arrived).toBe(0);
    world.box.permit.isGranted = true;
    expect(await world.box.call('fetch-ok', {}, { ...attempt(), callId })).toMatchObject({
      outcome: 'completed',
    });
    expect(world.arrived).toBe(1);
  });

  it('asks nothing for a tool that reaches nothing, or without an attempt', async () => {
    await world.box.call('hello', {}, { ...attempt(), agentId: 'free' });
    await world.box.call('fetch-ok', {}, proven(0));
    expect(world.box.permit.asked).toBe(0);
  });
});

// @shows review1-9
describe('a tool call without an approval', () => {
  it('is refused for an agent whose rules require one', async () => {
    expect(await world.box.call('hello', {}, { agentId: 'careful' })).toMatchObject({
      outcome: 'failed',
      code: 'TOOL.DENIED',
      message: expect.stringContaining('needs an approval'),
    });
  });

  it('is refused when it names no agent and any agent requires one', async () => {
    expect(await world.box.call('hello')).toMatchObject({ code: 'TOOL.DENIED' });
  });

  it('runs for an agent whose rules require none', async () => {
    expect(await world.box.call('hello', {}, { agentId: 'free' })).toMatchObject({ outcome: 'completed' });
  });
});
