import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { framesOf, initialCursor, SessionEvent } from '@antiphon/contracts/agent';
import type { Frame } from '@antiphon/contracts/agent';
import { createTestDatabase } from '@antiphon/testing';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  until,
  WORKSPACE,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld } from '@antiphon/agent-features/testing/agent-world';
import { hangs } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(30_000);

let world: AgentWorld;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
});
afterAll(() => world.close());

const framesInLog = async (sessionId: string): Promise<Frame[]> => {
  let cursor = initialCursor;
  return (await world.events(sessionId)).flatMap((recorded) => {
    const step = framesOf(cursor, SessionEvent.parse(recorded));
    cursor = step.cursor;
    return [...step.frames];
  });
};

describe('a turn that is cancelled after its driver was lost', () => {
  it("ends with offsets above the lost driver's frames and voids them", async () => {
    let say: (delta: string) => void = () => undefined;
    world.model.reply = (request, sink, call) => {
      say = (delta) => sink.onText(delta);
      return hangs()(request, sink, call);
    };
    const one = world.process();
    const { sessionId, turnId } = await submitTo(one, { address: newAddress() });
    await until(() => world.model.requests.length === 1);
    const live = world.watch(sessionId);
    await world.nats.connection.flush();
    const second = await submitTo(one, { sessionId }, 'and then?');
    for (const delta of ['one', 'two', 'three', 'four']) {
      say(delta);
      await until(() => live.some(({ data }) => data === delta));
    }
    one.kill();
    await world.handleExit(one);

    // No process drives the session, so the cancel is recorded before a next attempt can start.
    const other = world.process({ times: { leaseMs: 3_000, sweepMs: 3_600_000 } });
    await other.runtime.cancelTurn({ workspace: WORKSPACE, sessionId, caller: 'spec' });
    await world.ended(sessionId, 2);
    expect((await world.events(sessionId)).filter(({ type }) => type === 'ModelCallStarted')).toHaveLength(1);

    const texts = live.filter(({ event }) => event === 'text').map(({ offset }) => offset);
    const last = Math.max(...texts);
    const ending = (await framesInLog(sessionId)).filter(({ offset }) => offset > last);
    expect(ending.map(({ event, turnId: of }) => [event, of])).toEqual([
      ['restart', turnId],
      ['done', turnId],
      ['accepted', second.turnId],
      ['done', second.turnId],
    ]);
    await until(() => live.filter(({ event }) => event === 'done').length === 2);
    expect(ending[0]?.data).toEqual({ offset: texts[0] });
  });
});
