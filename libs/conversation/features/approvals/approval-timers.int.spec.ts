import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import protocol from '@temporalio/proto';
import { Worker } from '@temporalio/worker';
import type { ApprovalRule } from '@antiphon/config';
import { acrossWorkspaces } from '@antiphon/database';
import { createTestDatabase } from '@antiphon/testing';
import {
  WORKSPACE,
  newAddress,
  submitTo,
  testConfig,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import { echoTool } from '@antiphon/agent-features/testing/responders';
import { createRunsWorld } from '@antiphon/agent-features/testing/runs-world';
import type { RunsProcess, RunsWorld } from '@antiphon/agent-features/testing/runs-world';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(60_000);

/** If set, the histories of this spec are stored, to be replayed by every later version. */
const record = process.env['ANTIPHON_RECORD_HISTORIES'];
const FOLDER = fileURLToPath(new URL('../../../agent/workflows/histories/', import.meta.url));
const { History } = protocol.temporal.api.history.v1;

const rule: ApprovalRule = {
  tool: 'once',
  ask: 'always',
  expiresAfterMs: 60_000,
  escalateAfterMs: null,
  escalateTo: 'admin',
  answerBy: 'operator',
};
const configWith = (more: Partial<ApprovalRule>) =>
  testConfig({ tools: ['once'], approvals: [{ ...rule, ...more }] });
const brief = configWith({ escalateAfterMs: 300, expiresAfterMs: 6_000 });
const long = configWith({});

let world: RunsWorld;
let agent: RunsProcess;

beforeAll(async () => {
  world = await createRunsWorld(
    await createTestDatabase(),
    process.env['ANTIPHON_TEST_NATS_URL'] ?? '',
    process.env['ANTIPHON_TEST_TEMPORAL_ADDRESS'] ?? '',
  );
  world.agents.responders.tools = [echoTool(false, 'once')];
  world.agents.model.reply = async ({ messages }) => {
    const last = messages.at(-1);
    return last?.role === 'tool'
      ? says(last.results.map(({ content }) => content).join(' '))
      : asksFor({ name: 'once' });
  };
});
beforeEach(() => void (world.agents.responders.asked.tool.length = 0));
afterAll(() => world?.close());

const begin = async (config: typeof long, checkMs = 60_000) => {
  await agent?.stop();
  agent = world.process({ config, checkMs });
  await until(() => agent.worker.isPolling(), 30_000);
};
const waits = async () => {
  const { sessionId } = await submitTo(agent, { address: newAddress() });
  const asked = await until(async () =>
    (await world.agents.events(sessionId)).find(({ type }) => type === 'ApprovalRequested'),
  );
  return { sessionId, approvalId: String(asked.data['approvalId']) };
};
const answer = (approvalId: string, { runtime }: Pick<RunsProcess, 'runtime'> = agent) =>
  runtime.approvals.answer({
    ...{ workspace: WORKSPACE, approvalId, decision: 'approve', reason: '' },
    approver: { caller: 'sylvie', role: 'operator', agentId: null },
  });
const workflow = (approvalId: string) => world.temporal.workflow.getHandle(`approval/${approvalId}`);
const isRunning = (approvalId: string) =>
  workflow(approvalId)
    .describe()
    .then(
      ({ status }) => status.name === 'RUNNING',
      () => false,
    );
/** Returns true if Temporal lists the workflow as open. The list lags behind. */
const isListed = async (approvalId: string): Promise<boolean> => {
  const query = `WorkflowId = 'approval/${approvalId}' and ExecutionStatus = 'Running'`;
  return (await world.temporal.workflow.count(query)).count > 0;
};
const historyOf = async (approvalId: string): Promise<string> => {
  const as = { enums: String, longs: String, bytes: String };
  const fetched = History.fromObject((await workflow(approvalId).fetchHistory()) as object);
  const anonymous = (key: string, value: unknown): unknown => (key === 'identity' ? 'recorded' : value);
  return JSON.stringify(History.toObject(fetched, as), anonymous, 1);
};
const keep = async (name: string, approvalId: string): Promise<void> => {
  if (!record) return;
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(`${FOLDER}${name}.${record}.json`, `${await historyOf(approvalId)}\n`);
};

describe('an unanswered approval', () => {
  it('escalates, then expires, with a result for the model', async () => {
    await begin(brief);
    const { sessionId, approvalId } = await waits();
    const events = await world.agents.ended(sessionId);
    const types = events.map(({ type }) => type);
    expect(types.filter((type) => type.startsWith('Approval'))).toEqual([
      ...['ApprovalRequested', 'ApprovalEscalated', 'ApprovalExpired'],
    ]);
    expect(events.find(({ type }) => type === 'ApprovalEscalated')?.data['to']).toBe('admin');
    expect(events.at(-2)?.data['text']).toMatch(
      /^this call had no answer to its approval by .*; it was not run$/,
    );
    expect(world.agents.responders.asked.tool).toEqual([]);
    await workflow(approvalId).result();
    await keep('approval-expired', approvalId);
  });
});

describe('the Temporal workflow of a timer', () => {
  it('ends with the answer, and has no text of the call', async () => {
    await begin(long);
    const { sessionId, approvalId } = await waits();
    await until(() => isRunning(approvalId));
    await answer(approvalId);
    await world.agents.ended(sessionId);
    await workflow(approvalId).result();
    const payloads = [...(await historyOf(approvalId)).matchAll(/"data": "([^"]+)"/g)];
    const told = payloads.map(([, data]) => Buffer.from(data ?? '', 'base64').toString());
    expect(told).toContain(JSON.stringify({ workspace: WORKSPACE, approvalId }));
    expect(told.join()).not.toMatch(/once|sylvie/);
    await keep('approval-answered', approvalId);
  });

  it('is started again from the log after it was lost', async () => {
    await begin(long, 100);
    const { sessionId, approvalId } = await waits();
    // Otherwise the list could have it neither as open now nor as closed later.
    await until(() => isListed(approvalId));
    await workflow(approvalId).terminate('lost');
    await until(async () => !(await isListed(approvalId)));
    const schedule = world.temporal.schedule.getHandle(`${world.taskQueue}/reconcile-runs`);
    // The log is compared with Temporal each time that the schedule is made again, then once a
    // minute. One comparison may come before Temporal's list shows the loss.
    const loseSchedule = () => schedule.delete().catch(() => undefined);
    for (let isStarted = false, tries = 0; !isStarted && tries < 12; tries++) {
      await loseSchedule();
      isStarted = await until(() => isRunning(approvalId), 5_000).catch(() => false);
    }
    expect(await isRunning(approvalId)).toBe(true);
    await answer(approvalId);
    await world.agents.ended(sessionId);
    await workflow(approvalId).result();
  }, 120_000);
});

describe('a timer that missed an answer', () => {
  it('is ended by the reconciler, and timers of pending approvals are not', async () => {
    await begin(long);
    const reconciler = world.temporal.schedule.getHandle(`${world.taskQueue}/reconcile-runs`);
    // Its own firing, once a minute, would end the timer too.
    await reconciler.pause();
    const [waiting, closed] = [await waits(), await waits()];
    for (const { approvalId } of [waiting, closed]) await until(() => isListed(approvalId));
    // Before it waits, a timer reads the log, and would see an earlier answer there.
    await until(async () => (await historyOf(closed.approvalId)).includes('timerStarted'));
    // This process has no Temporal, as every process during an outage.
    const without = world.agents.process({ config: long });
    await answer(closed.approvalId, without);
    await world.agents.ended(closed.sessionId);
    const longAgo = `update agent_approvals set closed_at = closed_at - interval '1 day' where approval_id = $1 and closed_at is not null`;
    await until(
      async () =>
        (await acrossWorkspaces(world.agents.pool).query(longAgo, [closed.approvalId])).rowCount === 1,
    );
    expect(await isRunning(closed.approvalId)).toBe(true);
    await reconciler.trigger();
    await workflow(closed.approvalId).result();
    expect(await historyOf(waiting.approvalId)).not.toContain('approvalClosed');
    await answer(waiting.approvalId);
    await workflow(waiting.approvalId).result();
  });
});

const replays = (): void => {
  const codePath = createRequire(import.meta.url).resolve('@antiphon/agent-workflows/bundle');
  it('replays every recorded history', async () => {
    const files = readdirSync(FOLDER).filter((name) => /^approval-.*\.json$/.test(name));
    expect(files.length).toBeGreaterThanOrEqual(2);
    const histories = files.map((file) => ({
      workflowId: file,
      history: History.fromObject(JSON.parse(readFileSync(FOLDER + file, 'utf8')) as object),
    }));
    for await (const { workflowId, error } of Worker.runReplayHistories(
      { workflowBundle: { codePath } },
      histories,
    ))
      expect([workflowId, error]).toEqual([workflowId, undefined]);
  });
};
if (!record) describe('the Temporal workflow of an approval', replays);
