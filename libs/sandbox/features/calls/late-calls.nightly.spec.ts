import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { armFailpoints } from '@antiphon/kernel';
import { letTimePass } from '@antiphon/testing/waits';
import { proven, startCallWorld, unavailable } from '../testing/call-world.fixture.spec.js';
import type { CallWorld } from '../testing/call-world.fixture.spec.js';

jest.setTimeout(60_000);

/** The sandbox gives a call up 3.5 s after its caller was last heard. */
const GIVEN_UP_MS = 3_600;

let world: CallWorld;
beforeAll(async () => {
  world = await startCallWorld();
});
beforeEach(() => world.reset());
afterAll(() => world.close());

describe('a tool call that comes late', () => {
  it('does not run when this process was suspended after it took the call', async () => {
    armFailpoints((name) => (name === 'sandbox.call.taken' ? letTimePass(GIVEN_UP_MS) : Promise.resolve()));
    try {
      expect(await world.box.call('fetch-ok', {}, proven(0))).toMatchObject(
        unavailable('after its deadline'),
      );
      expect(world.arrived).toBe(0);
    } finally {
      armFailpoints(null);
    }
  });

  it('does not run when its caller has not asked for it while it waited for a cell', async () => {
    const occupies = world.box.call('loop', {}, { timeoutMs: GIVEN_UP_MS + 500 });
    const late = world.box.call('fetch-ok', {}, proven(0));
    expect(await late).toMatchObject(unavailable('gave the call up'));
    expect(world.arrived).toBe(0);
    await occupies;
  });

  it('runs when its caller has asked for it while it waited for a cell', async () => {
    const occupies = world.box.call('loop', {}, { timeoutMs: GIVEN_UP_MS + 500 });
    const callId = randomUUID();
    const call = world.box.call('fetch-ok', {}, { ...proven(0), callId });
    await letTimePass(2_000);
    await world.box.sandbox.calls.find({ workspace: 'default', sessionId: randomUUID(), callId });
    expect(await call).toMatchObject({ outcome: 'completed' });
    await occupies;
  });
});
