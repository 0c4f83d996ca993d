import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { ApprovalRule } from '@antiphon/config';
import type { Approver, EditedInput } from '@antiphon/contracts/agent';
import type { SessionExport } from '@antiphon/contracts/log';
import type { RecordedEvent } from '@antiphon/event-store';
import { replayRecord } from '@antiphon/orchestration-features/maintenance/replay-record';
import { acrossWorkspaces } from '@antiphon/database';
import { createTestDatabase } from '@antiphon/testing';
import {
  WORKSPACE,
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { echoTool } from '@antiphon/agent-features/testing/responders';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(30_000);

const DAY_MS = 86_400_000;
const rule: ApprovalRule = {
  tool: '*',
  ask: 'unsafe',
  expiresAfterMs: DAY_MS,
  escalateAfterMs: 3_600_000,
  escalateTo: 'admin',
  answerBy: 'operator',
};
const config = testConfig({ tools: ['echo', 'once', 'twice'], approvals: [rule] });
const ada: Approver = { caller: 'ada', role: 'operator', agentId: null };
const bob: Approver = { caller: 'bob', role: 'admin', agentId: null };

let world: AgentWorld;
let defaults: AgentWorld['responders'];

beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  defaults = { ...world.responders };
});
beforeEach(async () => {
  await world.stopAll();
  world.model.requests.length = 0;
  for (const asked of Object.values(world.responders.asked)) asked.length = 0;
  Object.assign(world.responders, defaults);
  world.responders.tools = [echoTool(true), echoTool(false, 'once'), echoTool(false, 'twice')];
  uses('once');
});
afterAll(() => world.close());

/** Requests tools in the first call of a turn, and repeats their results in the second. */
const uses = (...names: string[]): void => {
  world.model.reply = async ({ messages }) => {
    const last = messages.at(-1);
    return last?.role === 'tool'
      ? says(last.results.map(({ content }) => content).join(' '))
      : asksFor(...names.map((name, index) => ({ name, input: { n: index } })));
  };
};
const start = () => world.process({ config });
const pending = (sessionId: string, { runtime }: TestProcess, count = 1) =>
  until(async () => {
    const query = { workspace: WORKSPACE, status: 'pending' as const, sessionId, limit: 50 };
    const { approvals } = await runtime.approvals.list(query);
    return approvals.length === count && approvals;
  });
/** Starts a turn that waits for an approval. */
const waits = async (process: TestProcess) => {
  const { sessionId, turnId } = await submitTo(process, { address: newAddress() });
  const [approval] = await pending(sessionId, process);
  return { sessionId, turnId, approvalId: approval!.id, approval: approval! };
};
const answer = (
  { runtime }: TestProcess,
  approvalId: string,
  decision: 'approve' | 'deny',
  more: { approver?: Approver; reason?: string; digest?: string; input?: EditedInput } = {},
) =>
  runtime.approvals.answer({
    ...{ workspace: WORKSPACE, approvalId, decision, reason: '', approver: ada },
    ...more,
  });
const replayOf = (sessionId: string, events: readonly RecordedEvent[]) => {
  const head = { version: events.length, hash: events.at(-1)?.hash ?? '' };
  const header = { kind: 'antiphon.session', format: 1, workspace: WORKSPACE, sessionId, head } as const;
  return replayRecord({ ...header, events: events as unknown as SessionExport['events'] }, { limit: 1 });
};
const count = async (sessionId: string, type: RegExp) =>
  (await world.types(sessionId)).filter((name) => type.test(name)).length;

describe('a tool that requires an approval', () => {
  it('is listed newest first, or oldest first, page by page', async () => {
    const agent = start();
    const asked = [(await waits(agent)).approvalId, (await waits(agent)).approvalId];
    const list = async (order?: 'asc' | 'desc'): Promise<string[]> => {
      const ids: string[] = [];
      for (let cursor: string | undefined, more = true; more;) {
        const query = { workspace: WORKSPACE, status: 'pending' as const, limit: 1, order, cursor };
        const { approvals, nextCursor } = await agent.runtime.approvals.list(query);
        ids.push(...approvals.map(({ id }) => id));
        [cursor, more] = [nextCursor ?? undefined, nextCursor !== null];
      }
      return ids.filter((id) => asked.includes(id));
    };
    expect(await list('asc')).toEqual(asked);
    expect(await list('desc')).toEqual(asked.toReversed());
    expect(await list()).toEqual(asked.toReversed());
  });

  // @shows agents-A11
  it('is called once, after the approval', async () => {
    uses('echo', 'once');
    const agent = start();
    const { sessionId } = await submitTo(agent, { address: newAddress() });
    const frames = world.watch(sessionId);
    const [approval] = await pending(sessionId, agent);
    expect(approval).toMatchObject({ tool: 'once', input: { n: 1 }, agentId: 'main', answerBy: 'operator' });
    await until(() => agent.runtime.working() === 0);
    expect(world.responders.asked.tool).toEqual([]);
    expect(await world.types(sessionId)).toEqual([
      ...['SessionStarted', 'TurnRequested', 'ModelCallStarted', 'ModelCallCompleted', 'ApprovalRequested'],
    ]);
    const answered = await answer(agent, approval!.id, 'approve', { digest: approval!.digest });
    expect(answered).toMatchObject({ recorded: true, decision: 'approve', answeredBy: 'ada' });
    const events = await world.ended(sessionId);
    expect(events.at(-2)?.data['text']).toBe('{"n":0} {"n":1}');
    expect(world.responders.asked.tool.map(({ name }) => name).sort()).toEqual(['echo', 'once']);
    expect(world.responders.asked.tool.find(({ name }) => name === 'once')?.approved).toEqual({
      moduleDigest: 'digest',
      grants: [],
    });
    await until(() => frames.some(({ event }) => event === 'done'));
    expect(frames.map(({ event }) => event)).toEqual(
      expect.arrayContaining(['approval', 'approval_update', 'tool_result', 'done']),
    );
  });

  it('is not called after a denial, whose reason the model receives', async () => {
    const agent = start();
    const { sessionId, approvalId } = await waits(agent);
    await answer(agent, approvalId, 'deny', { reason: 'not on a Sunday' });
    const events = await world.ended(sessionId);
    expect(world.responders.asked.tool).toEqual([]);
    expect(world.model.requests[1]?.messages.at(-1)).toMatchObject({
      results: [{ isError: true, content: 'this call was not approved: not on a Sunday; it was not run' }],
    });
    expect(events.at(-1)?.type).toBe('TurnCompleted');
  });

  it('waits for all approvals of its step', async () => {
    uses('once', 'twice');
    const agent = start();
    const { sessionId } = await submitTo(agent, { address: newAddress() });
    const [second, first] = await pending(sessionId, agent, 2);
    await answer(agent, second!.id, 'approve');
    await pending(sessionId, agent, 1);
    expect(world.responders.asked.tool).toEqual([]);
    await answer(agent, first!.id, 'deny');
    await world.ended(sessionId);
    expect(world.responders.asked.tool.map(({ name }) => name)).toEqual(['twice']);
  });

  it('has no pending approval after the cancel of its turn', async () => {
    const agent = start();
    const { sessionId, turnId, approvalId } = await waits(agent);
    const cancelled = await agent.runtime.cancelTurn({ workspace: WORKSPACE, sessionId, caller: 'spec' });
    expect(cancelled).toEqual({ cancelled: true });
    expect((await world.ended(sessionId)).at(-1)).toMatchObject({ type: 'TurnCancelled', data: { turnId } });
    await expect(answer(agent, approvalId, 'approve')).rejects.toMatchObject({ code: 'APPROVAL.CLOSED' });
    expect(await count(sessionId, /^ToolCall|ApprovalGranted/)).toBe(0);
    await until(async () => {
      const view = await agent.runtime.approvals.get({ workspace: WORKSPACE, approvalId });
      return view.status === 'withdrawn';
    });
  });

  it('is not called if it changed after its approval', async () => {
    const agent = start();
    const { sessionId, approvalId } = await waits(agent);
    world.responders.tools = [{ ...echoTool(false, 'once'), grants: ['http:evil.example.com'] }];
    await expect(answer(agent, approvalId, 'approve')).rejects.toMatchObject({
      code: 'APPROVAL.CLOSED',
      data: { status: 'voided' },
    });
    await world.ended(sessionId);
    expect(world.responders.asked.tool).toEqual([]);
    expect(await count(sessionId, /ApprovalGranted/)).toBe(0);
  });
});

describe('an answer', () => {
  it('is accepted from allowed roles only', async () => {
    const agent = start();
    const { approvalId } = await waits(agent);
    const by = (approver: Approver) => answer(agent, approvalId, 'approve', { approver });
    await expect(by({ caller: 'agent', role: 'admin', agentId: 'main' })).rejects.toMatchObject({
      code: 'APPROVAL.AGENT_CANNOT_ANSWER',
    });
    for (const role of ['viewer', 'member'] as const)
      await expect(by({ caller: 'eve', role, agentId: null })).rejects.toMatchObject({
        kind: 'forbidden',
        code: 'APPROVAL.ROLE_TOO_LOW',
      });
    await expect(answer(agent, approvalId, 'approve', { digest: 'seen' })).rejects.toMatchObject({
      code: 'APPROVAL.DIGEST_MISMATCH',
    });
    await expect(answer(agent, '00000000-0000-4000-8000-000000000000', 'approve')).rejects.toMatchObject({
      code: 'APPROVAL.NOT_FOUND',
    });
    await expect(answer(agent, approvalId, 'deny')).resolves.toMatchObject({ recorded: true });
  });

  it('is recorded with its caller, role and the name of its key', async () => {
    const agent = start();
    const { sessionId, approvalId } = await waits(agent);
    const approver = { caller: 'key/k7', role: 'admin', agentId: null, name: 'night shift' } as const;
    await answer(agent, approvalId, 'approve', { approver });
    const grant = (await world.ended(sessionId)).find(({ type }) => type === 'ApprovalGranted');
    expect(grant?.data).toMatchObject({
      answeredBy: 'key/k7',
      answeredByName: 'night shift',
      role: 'admin',
    });
  });

  it('returns the first answer to a repeat, and a conflict with its author to any other', async () => {
    const [one, two] = [start(), start()];
    const { sessionId, approvalId } = await waits(one);
    const both = await Promise.allSettled([
      answer(one, approvalId, 'approve'),
      answer(two, approvalId, 'approve', { approver: bob }),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const won = both.find((end) => end.status === 'fulfilled');
    const lost = both.find((end) => end.status === 'rejected');
    const first = won?.status === 'fulfilled' ? won.value : null;
    expect(lost?.status === 'rejected' && lost.reason).toMatchObject({
      kind: 'conflict',
      code: 'APPROVAL.ANSWERED',
      data: { status: 'granted', answeredBy: first?.answeredBy, answeredAt: first?.answeredAt },
    });
    await world.ended(sessionId);
    const approver = first?.answeredBy === 'ada' ? ada : bob;
    expect(await answer(two, approvalId, 'approve', { approver })).toEqual(first);
    await expect(answer(two, approvalId, 'deny', { approver })).rejects.toMatchObject({
      code: 'APPROVAL.ANSWERED',
    });
    expect(await count(sessionId, /^Approval(Granted|Denied)$/)).toBe(1);
    expect(world.responders.asked.tool).toHaveLength(1);
  });

  it('after the deadline expires the approval, with or without a timer', async () => {
    const agent = start();
    const { sessionId, approvalId } = await waits(agent);
    agent.kill();
    await world.handleExit(agent);
    const later = world.process({ config, clock: { now: () => Date.now() + DAY_MS } });
    await expect(answer(later, approvalId, 'approve')).rejects.toMatchObject({
      code: 'APPROVAL.CLOSED',
      data: { status: 'expired' },
    });
    const events = await world.ended(sessionId);
    expect(events.find(({ type }) => type === 'ApprovalExpired')).toBeDefined();
    expect(world.responders.asked.tool).toEqual([]);
  });
});

describe('an approval with edited arguments', () => {
  const schema = {
    type: 'object',
    properties: { n: { type: 'integer', maximum: 9 } },
    additionalProperties: false,
  };
  const policy = [{ tool: 'once', argument: '/n', matches: '7', decision: 'deny' as const }];
  const edit = (process: TestProcess, approvalId: string, input: EditedInput) =>
    answer(process, approvalId, 'approve', { input });
  const startEditing = () => {
    world.responders.tools = [{ ...echoTool(false, 'once'), inputSchema: schema }];
    return world.process({ config: { ...config, agents: config.agents.map((one) => ({ ...one, policy })) } });
  };

  it('runs its tool once with them, and the model, the views and a replay show the change', async () => {
    const agent = startEditing();
    const { sessionId, approvalId, approval } = await waits(agent);
    const first = await edit(agent, approvalId, { n: 5 });
    const events = await world.ended(sessionId);
    expect(world.responders.asked.tool.map(({ input }) => input)).toEqual([{ n: 5 }]);
    const { data } = events.find(({ type }) => type === 'ApprovalGranted') ?? {};
    expect(data).toMatchObject({ digest: approval.digest, edited: { input: { n: 5 } } });
    expect(first.approvedDigest).toBe((data?.['edited'] as { digest: string }).digest);
    expect(first.approvedDigest).not.toBe(approval.digest);
    // The assistant keeps its own arguments; the result tells of the change.
    const [asked, result] = world.model.requests[1]?.messages.slice(-2) ?? [];
    expect(asked).toMatchObject({ toolCalls: [{ input: { n: 0 } }] });
    expect(result).toMatchObject({
      results: [{ content: expect.stringMatching(/A person changed the arguments.*\{"n":5\}\]\n\{"n":5\}/) }],
    });
    const view = () => agent.runtime.approvals.get({ workspace: WORKSPACE, approvalId });
    await until(async () => (await view()).status === 'granted');
    expect(await view()).toMatchObject({ input: { n: 0 }, edited: { input: { n: 5 } } });
    expect(replayOf(sessionId, events)).toMatchObject({ ok: true });
    // A fork recalls what the model saw.
    const fork = await agent.runtime.forkSession({ workspace: WORKSPACE, caller: 'spec', sessionId });
    const recalled = (await world.events(fork.sessionId)).find(({ type }) => type === 'SessionForked');
    expect(JSON.stringify(recalled?.data)).toMatch(/A person changed the arguments/);
    // The same decision again gets the same reply; another one is refused.
    expect(await edit(agent, approvalId, { n: 5 })).toEqual(first);
    for (const other of [{ n: 6 }, { n: 0 }])
      await expect(edit(agent, approvalId, other)).rejects.toMatchObject({ code: 'APPROVAL.ANSWERED' });
    await expect(answer(agent, approvalId, 'approve')).rejects.toMatchObject({ code: 'APPROVAL.ANSWERED' });
    expect(world.responders.asked.tool).toHaveLength(1);
  });

  it('is refused by a path for arguments that the tool does not take, and by a rule that denies', async () => {
    const agent = startEditing();
    const { sessionId, approvalId } = await waits(agent);
    const check = (input: EditedInput) =>
      agent.runtime.approvals.check({ workspace: WORKSPACE, approvalId, input, approver: ada });
    for (const [input, path] of [
      [{ n: 'x' }, '/n'],
      [{ n: 10 }, '/n'],
      [{ n: 1, m: 2 }, '/m'],
    ] as const) {
      const problems = [expect.objectContaining({ path })];
      await expect(edit(agent, approvalId, input)).rejects.toMatchObject({
        ...{ kind: 'invalid', code: 'APPROVAL.ARGUMENTS_INVALID', data: { problems } },
      });
      expect(await check(input)).toEqual({ problems, deniedByRule: null });
    }
    const denied = { kind: 'forbidden', code: 'APPROVAL.EDIT_DENIED', data: { rule: 1 } };
    await expect(edit(agent, approvalId, { n: 7 })).rejects.toMatchObject(denied);
    expect(await check({ n: 7 })).toEqual({ problems: [], deniedByRule: 1 });
    await expect(answer(agent, approvalId, 'deny', { input: { n: 1 } })).rejects.toMatchObject({
      code: 'APPROVAL.EDIT_WITH_DENIAL',
    });
    expect(await count(sessionId, /^Approval(Granted|Denied|Voided)$/)).toBe(0);
    // The arguments of the request are no edit.
    expect(await edit(agent, approvalId, { n: 0 })).not.toHaveProperty('approvedDigest');
    await world.ended(sessionId);
    expect(world.responders.asked.tool.map(({ input }) => input)).toEqual([{ n: 0 }]);
  });
});

describe('a turn that waits', () => {
  it('is taken over by no process before an answer', async () => {
    const one = start();
    const { sessionId, approvalId } = await waits(one);
    one.kill();
    await world.handleExit(one);
    const two = start();
    const before = await world.types(sessionId);
    const owner = async (): Promise<string | undefined> => {
      const text = `select owner from leases where name = $1 and expires_at > clock_timestamp() and owner is not null`;
      const { rows } = await acrossWorkspaces(world.pool).query<{ owner: string }>(text, [
        `session/${sessionId}`,
      ]);
      return rows[0]?.owner;
    };
    for (let round = 0; round < 5; round++) await two.runtime.takeOver();
    expect([await owner(), await world.types(sessionId)]).toEqual([undefined, before]);
    await answer(two, approvalId, 'approve');
    await world.ended(sessionId);
    expect(world.responders.asked.tool).toHaveLength(1);
  });

  // @shows fault-edited-approval
  it('continues after the crash of the process that took an edited answer', async () => {
    const one = start();
    const { sessionId, approvalId } = await waits(one);
    one.kill();
    await world.handleExit(one);
    const life: { process: TestProcess | null } = { process: null };
    const killable = world.process({
      config,
      store: {
        ...world.store,
        append: async (request) => {
          const result = await world.store.append(request);
          // Its start may append as well: agents of the configuration.
          const types = request.streams.flatMap(({ events }) => events.map(({ type }) => type));
          if (types.includes('ApprovalGranted')) life.process?.kill();
          return result;
        },
      },
    });
    life.process = killable;
    answer(killable, approvalId, 'approve', { input: { n: 3 } }).catch(() => undefined);
    await until(async () => (await world.types(sessionId)).includes('ApprovalGranted'));
    await world.handleExit(killable);
    start();
    const events = await world.ended(sessionId);
    expect(events.at(-2)?.data['text']).toMatch(/^\[A person changed .*\n\{"n":3\}$/s);
    expect(world.responders.asked.tool.map(({ input }) => input)).toEqual([{ n: 3 }]);
  });
});
