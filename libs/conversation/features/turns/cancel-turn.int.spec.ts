import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { TOOL_CANCEL_SUBJECT } from '@antiphon/contracts/sandbox';
import { ModelFailure } from '@antiphon/providers-domain';
import { createTestDatabase } from '@antiphon/testing';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  until,
  WORKSPACE,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { asksFor, hangs, streams } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(30_000);

let world: AgentWorld;
let agent: TestProcess;
let defaults: AgentWorld['responders'];

beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process();
  defaults = { ...world.responders };
});
beforeEach(() => {
  world.model.reply = streams('hello');
  world.model.requests.length = 0;
  for (const asked of Object.values(world.responders.asked)) asked.length = 0;
  Object.assign(world.responders, defaults);
});
afterAll(() => world.close());

const submit = () => submitTo(agent, { address: newAddress() });
const cancel = (sessionId: string, turnId?: string) =>
  agent.runtime.cancelTurn({
    workspace: WORKSPACE,
    sessionId,
    caller: 'spec',
    ...(turnId ? { turnId } : {}),
  });

describe('cancel', () => {
  it('stops the provider’s stream within a second, stores its text and settles', async () => {
    const begun = new Promise<void>((resolve) => (world.model.reply = hangs('Once upon', resolve)));
    const { sessionId } = await submit();
    await begun;
    const asked = performance.now();
    expect(await cancel(sessionId)).toEqual({ cancelled: true });
    const events = await world.ended(sessionId);
    expect(performance.now() - asked).toBeLessThan(1_000);
    expect(events.slice(-2)).toMatchObject([
      { type: 'ModelCallAborted', data: { reason: 'cancelled', text: 'Once upon', dispatched: true } },
      { type: 'TurnCancelled' },
    ]);
    expect(world.model.requests[0]?.signal.aborted).toBe(true);
    await until(() => world.responders.asked.settle.length === 1);
    expect(world.responders.asked.settle[0]?.outcome).toEqual({ kind: 'unknown' });
  });

  it('stops waiting for running tools and starts no other', async () => {
    const told: string[] = [];
    const hint = world.nats.connection.subscribe(TOOL_CANCEL_SUBJECT, {
      callback: (_error, message) => void told.push((message.json() as { callId: string }).callId),
    });
    world.responders.tool = () => new Promise(() => undefined);
    world.model.reply = async () => asksFor({ name: 'echo' });
    const { sessionId } = await submit();
    const call = await until(() => world.responders.asked.tool[0]);
    await cancel(sessionId);
    const events = await world.ended(sessionId);
    expect(events.slice(-2)).toMatchObject([{ type: 'ToolCallUnknown' }, { type: 'TurnCancelled' }]);
    await until(() => told.includes(call.callId));
    hint.unsubscribe();
    expect(world.model.requests).toHaveLength(1);
  });

  it('charges nothing for a call that its provider refuses in the same moment', async () => {
    world.model.reply = ({ signal }) =>
      new Promise((_resolve, reject) => {
        const refusal = {
          reason: 'cancelled',
          message: 'cancelled',
          refused: true,
          dispatched: true,
        } as const;
        signal.addEventListener('abort', () => reject(new ModelFailure({ ...refusal, retryable: false })));
      });
    const { sessionId } = await submit();
    await until(() => world.model.requests.length === 1);
    await cancel(sessionId);
    const events = await world.ended(sessionId);
    const aborted = events.find(({ type }) => type === 'ModelCallAborted')?.data;
    expect(aborted).toMatchObject({ reason: 'cancelled', dispatched: true, refused: true, usage: null });
    const settled = await until(() =>
      world.responders.asked.settle.find(({ reservationId }) => reservationId === aborted?.['reservationId']),
    );
    expect(settled.outcome).toEqual({ kind: 'not_dispatched', reason: 'refused' });
  });

  it('ends a turn that waits for a retry', async () => {
    world.model.reply = async () => {
      throw new ModelFailure({
        reason: 'provider_error',
        message: 'busy',
        dispatched: true,
        retryable: true,
        retryAfterMs: 50_000,
      });
    };
    const { sessionId } = await submit();
    await until(async () => (await world.types(sessionId)).includes('ModelCallAborted'));
    await cancel(sessionId);
    expect((await world.ended(sessionId)).at(-1)?.type).toBe('TurnCancelled');
    await until(() => agent.runtime.working() === 0);
  });

  it('ends every queued turn, or the given one', async () => {
    world.model.reply = hangs();
    const { sessionId } = await submit();
    const second = await submitTo(agent, { sessionId });
    const third = await submitTo(agent, { sessionId });
    expect(await cancel(sessionId, third.turnId)).toEqual({ cancelled: true });
    expect(await world.types(sessionId)).not.toContain('TurnCancelled');
    expect(await cancel(sessionId)).toEqual({ cancelled: true });
    const events = await world.ended(sessionId, 3);
    expect(events.slice(-2).map(({ type, data }) => [type, data['turnId']])).toEqual([
      ['TurnCancelled', second.turnId],
      ['TurnCancelled', third.turnId],
    ]);
    expect(events.filter(({ type }) => type === 'ModelCallStarted')).toHaveLength(1);
  });

  it('reports how the turn ended when it comes too late', async () => {
    const { sessionId, turnId } = await submit();
    await world.ended(sessionId);
    expect(await cancel(sessionId, turnId)).toEqual({ cancelled: false, status: 'completed' });
    expect(await cancel(sessionId)).toEqual({ cancelled: false, status: 'completed' });
    const other = world.process();
    expect(
      await other.runtime.cancelTurn({ workspace: WORKSPACE, sessionId, turnId, caller: 'spec' }),
    ).toEqual({ cancelled: false, status: 'completed' });
  });

  it('reports an unknown session or turn', async () => {
    await expect(cancel(randomUUID())).rejects.toMatchObject({ code: 'SESSION.NOT_FOUND' });
    const { sessionId } = await submit();
    await world.ended(sessionId);
    await expect(cancel(sessionId, randomUUID())).rejects.toMatchObject({ code: 'TURN.NOT_FOUND' });
  });

  it('is recorded once for repeated requests', async () => {
    world.model.reply = hangs();
    const { sessionId } = await submit();
    const answers = await Promise.all([1, 2, 3].map(() => cancel(sessionId)));
    const events = await world.ended(sessionId);
    expect(events.filter(({ type }) => type === 'TurnCancelRequested')).toHaveLength(1);
    expect(answers.some(({ cancelled }) => cancelled)).toBe(true);
  });

  it('reaches a turn that another process drives', async () => {
    const begun = new Promise<void>((resolve) => (world.model.reply = hangs('…', resolve)));
    const { sessionId } = await submit();
    await begun;
    const other = world.process();
    const asked = performance.now();
    expect(await other.runtime.cancelTurn({ workspace: WORKSPACE, sessionId, caller: 'spec' })).toEqual({
      cancelled: true,
    });
    const events = await world.ended(sessionId);
    expect(performance.now() - asked).toBeLessThan(1_000);
    expect(events.at(-1)?.type).toBe('TurnCancelled');
  });
});
