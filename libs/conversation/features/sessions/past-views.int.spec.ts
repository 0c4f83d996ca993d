import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import type { ApprovalRule } from '@antiphon/config';
import { listProjections } from '@antiphon/event-store';
import type { RecordedEvent } from '@antiphon/event-store';
import { createTestDatabase } from '@antiphon/testing';
import { ReadAgents } from '@antiphon/agents-features/lifecycle/read-agents.handler';
import { ReadApprovals } from '../approvals/read-approvals.handler.js';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
  WORKSPACE,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { echoTool } from '@antiphon/agent-features/testing/responders';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';
import { agentAgents, agentSessions } from '@antiphon/agent-features/projections';
import { ReadSessions } from './read-sessions.handler.js';

jest.setTimeout(30_000);

const rule: ApprovalRule = {
  ...{ tool: '*', ask: 'unsafe', expiresAfterMs: 86_400_000, escalateAfterMs: null },
  ...{ escalateTo: 'admin', answerBy: 'operator' },
};
const ENDS = new Set(['TurnCompleted', 'TurnFailed', 'TurnCancelled']);

let world: AgentWorld;
let agent: TestProcess;
let sessions: ReadSessions;
let approvals: ReadApprovals;
let agents: ReadAgents;
let log: RecordedEvent[];
let head: number;
let asks = false;

beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  world.responders.tools = [echoTool(false, 'once')];
  world.model.reply = async ({ messages }) =>
    asks && messages.at(-1)?.role !== 'tool' ? asksFor({ name: 'once' }) : says('done');
  agent = world.process({ config: testConfig({ tools: ['once'], approvals: [rule] }) });
  [sessions, approvals, agents] = [agent.get(ReadSessions), agent.get(ReadApprovals), agent.get(ReadAgents)];
  const addresses = [newAddress(), newAddress(), newAddress()] as const;
  for (const address of addresses) {
    const { sessionId } = await submitTo(agent, { address });
    await world.ended(sessionId);
  }
  asks = true;
  await submitTo(agent, { address: addresses[0] });
  await submitTo(agent, { address: addresses[1] });
  const pending = () => agent.runtime.approvals.list({ workspace: WORKSPACE, status: 'pending', limit: 50 });
  await until(async () => (await pending()).approvals.length === 2);
  const [asked] = (await pending()).approvals;
  await agent.runtime.approvals.answer({
    ...{ workspace: WORKSPACE, approvalId: asked!.id, decision: 'deny', reason: 'no' },
    approver: { caller: 'spec', role: 'admin', agentId: null, name: null },
  });
  await world.ended(asked!.sessionId, 2);
  // The live lists have every event once the projections are at the head.
  await until(async () => {
    head = await world.store.headPosition();
    const listed = await listProjections(world.pool, [agentSessions, agentAgents]);
    const own = listed.filter(({ service }) => service === 'agent');
    return own.length > 0 && own.every(({ position }) => position >= head);
  });
  log = await world.store.readLog({ after: 0, limit: 5_000 });
});
afterAll(() => world.close());

const listAt = (at?: number) => sessions.list({ workspace: WORKSPACE, limit: 50, at });
const withoutPosition = <T extends object>(reply: T) => ({ ...reply, position: undefined, head: undefined });

/** Folds the sessions from the log, without the projection. */
const foldSessions = (at: number) => {
  const found = new Map<string, { id: string; turns: number; openTurns: number; pendingApprovals: number }>();
  for (const { type, streamId, data, position } of log) {
    if (position > at || !streamId.startsWith('session-') || streamId.startsWith('session-key-')) continue;
    const id = streamId.slice('session-'.length);
    const before = found.get(id) ?? { id, turns: 0, openTurns: 0, pendingApprovals: 0 };
    if (type === 'TurnRequested') [before.turns, before.openTurns] = [before.turns + 1, before.openTurns + 1];
    if (ENDS.has(type)) before.openTurns--;
    if (type === 'ApprovalRequested') before.pendingApprovals++;
    if (/^Approval(Granted|Denied|Expired|Voided)$/.test(type)) before.pendingApprovals--;
    if (data !== null) found.set(id, before);
  }
  return [...found.values()].sort((a, b) => a.id.localeCompare(b.id));
};

describe('a view of the past', () => {
  it('equals the live answer at the head', async () => {
    expect(withoutPosition(await listAt(head))).toEqual(withoutPosition(await listAt()));
    const [one] = (await listAt()).sessions;
    const request = { workspace: WORKSPACE, sessionId: one!.id };
    expect(await sessions.get({ ...request, at: head })).toEqual({
      ...(await sessions.get(request)),
      ...{ position: head, head },
    });
    const all = { workspace: WORKSPACE, limit: 50 };
    expect(withoutPosition(await approvals.list({ ...all, at: head }))).toEqual(
      withoutPosition(await approvals.list(all)),
    );
    const now = await agents.list({ workspace: WORKSPACE });
    const then = await agents.list({ workspace: WORKSPACE, at: head });
    // Signs of life of a process are not facts.
    expect(then.agents).toEqual(now.agents.map((view) => ({ ...view, lastSeenAt: null })));
  });

  it('equals an independent fold of the log at random positions', () =>
    fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: head }), async (at) => {
        const page = await listAt(at);
        expect([page.position, page.head]).toEqual([at, head]);
        const seen = page.sessions.map(({ id, turns, openTurns, pendingApprovals }) => ({
          ...{ id, turns, openTurns, pendingApprovals },
        }));
        expect(seen.sort((a, b) => a.id.localeCompare(b.id))).toEqual(foldSessions(at));
        for (const { title, turns, lastPosition } of page.sessions) {
          expect(title === null).toBe(turns === 0);
          expect(lastPosition).toBeLessThanOrEqual(at);
        }
        const asked = log.filter(({ type, position }) => type === 'ApprovalRequested' && position <= at);
        const denied = log.some(({ type, position }) => type === 'ApprovalDenied' && position <= at);
        const { approvals: found } = await approvals.list({ workspace: WORKSPACE, limit: 50, at });
        expect(found.map(({ id }) => id).sort()).toEqual(asked.map(({ data }) => data['approvalId']).sort());
        expect(found.filter(({ status }) => status === 'denied')).toHaveLength(denied ? 1 : 0);
      }),
      { numRuns: 40 },
    ));

  it('shows an agent as working exactly while its turns were open', async () => {
    // A configured agent is recorded during its first turn, so the turn may come first.
    const ready = log.find(({ type }) => type === 'AgentReady')?.position ?? Infinity;
    const turns = log.filter(({ category, position }) => category === 'session' && position > ready);
    expect(turns.length).toBeGreaterThan(10);
    for (const { position } of turns) {
      const open = foldSessions(position).reduce((sum, { openTurns }) => sum + openTurns, 0);
      const { agents: found } = await agents.list({ workspace: WORKSPACE, at: position });
      const states = found.map(({ id, state }) => [position, id, state]);
      expect(states).toEqual([[position, 'main', open > 0 ? 'working' : 'idle']]);
    }
  });

  it('filters and pages as the live list does', async () => {
    const waiting = await sessions.list({ workspace: WORKSPACE, state: 'waiting', limit: 50, at: head });
    expect(waiting.sessions.map(({ state }) => state)).toEqual(['waiting']);
    const none = await sessions.list({ workspace: WORKSPACE, text: 'no such key', limit: 50 });
    expect(none.sessions).toEqual([]);
    const first = await sessions.list({ workspace: WORKSPACE, limit: 2, at: head });
    const rest = await sessions.list({ workspace: WORKSPACE, limit: 2, at: head, cursor: first.nextCursor! });
    const all = (await listAt(head)).sessions.map(({ id }) => id);
    expect([...first.sessions, ...rest.sessions].map(({ id }) => id)).toEqual(all);
    await expect(listAt(head + 1_000)).rejects.toMatchObject({ code: 'LOG.POSITION_AHEAD' });
  });
});
