import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import type { WorkflowHandle } from '@temporalio/client';
import { openTemporal } from '@antiphon/temporal';
import type { TemporalLink } from '@antiphon/temporal';
import { until } from '@antiphon/testing';
import { AT, append, inAuditWorld, reader } from '../audit-world.spec.js';
import { pollWithin } from './poll-within.js';
import { compareWorkflows } from './workflows-equal-log.js';

const ADDRESS = process.env['ANTIPHON_TEST_TEMPORAL_ADDRESS'] ?? '';
const LATER = '2126-01-01T00:00:00.000Z';
let temporal: TemporalLink;
let connection: Connection;
/** Task queue of this spec on the shared server; no worker polls it. */
let taskQueue: string;

beforeAll(async () => {
  connection = await Connection.connect({ address: ADDRESS });
  temporal = openTemporal(ADDRESS);
});
afterAll(async () => {
  await Promise.all([connection.close(), temporal.close()]);
});
inAuditWorld();
beforeEach(() => void (taskQueue = `spec-${randomUUID()}`));
const started: WorkflowHandle[] = [];
afterEach(async () => {
  for (const handle of started.splice(0)) await handle.terminate();
});

/** Compares once. With `late`, the reconciler has had its time. */
const compare = async ({ late = false } = {}) => {
  const compared = { pool: reader, temporal, taskQueue, ...(late ? { reconcileMs: 0 } : {}) };
  const { findings, checked } = await compareWorkflows(compared, pollWithin(200));
  const said = (open: boolean) =>
    findings.filter((one) => (one.kind === 'open') === open).map(({ message }) => message);
  return { checked, open: said(true), broken: said(false) };
};
const clean = (checked: number) => ({ checked, open: [], broken: [] });

const say = (stream: string, type: string, data: object) =>
  append(stream, [{ type, schemaVersion: 1, data } as never]);
interface Begun {
  readonly stream: string;
  readonly ids: { readonly turnId: string; readonly callId: string; readonly approvalId: string };
}
const begin = (): Begun => ({
  stream: `session-${randomUUID()}`,
  ids: { turnId: randomUUID(), callId: randomUUID(), approvalId: randomUUID() },
});
const ask = async (): Promise<Begun> => {
  const begun = begin();
  await say(begun.stream, 'ApprovalRequested', begun.ids);
  return begun;
};
const defer = async (dueAt = AT): Promise<Begun> => {
  const begun = begin();
  const { turnId, callId } = begun.ids;
  await say(begun.stream, 'ToolCallDeferred', { turnId, callId, reason: 'unsent', deferredAt: AT, dueAt });
  return begun;
};
const start = async (...ids: string[]): Promise<void> => {
  const client = new Client({ connection, namespace: 'antiphon' });
  for (const workflowId of ids)
    started.push(await client.workflow.start('unknownWorkflow', { workflowId, taskQueue }));
  const query = `TaskQueue = '${taskQueue}'`;
  await until(async () => (await client.workflow.count(query)).count >= ids.length);
};

describe('Temporal compared with approvals and tool calls', () => {
  it('waits for exactly the open items of the log', async () => {
    const [asked, deferred, answered, done] = [await ask(), await defer(), await ask(), await defer()];
    await say(answered.stream, 'ApprovalGranted', answered.ids);
    await say(done.stream, 'ToolCallDeferred', { ...done.ids, reason: 'lost', deferredAt: AT, dueAt: AT });
    await say(done.stream, 'ToolCallCompleted', done.ids);
    await start(`approval/${asked.ids.approvalId}`, `tool/${deferred.ids.callId}`);
    expect(await compare()).toEqual(clean(2));
    expect(await compare({ late: true })).toEqual(clean(2));
  });

  it.each([
    ['approval', ask, ({ ids }: Begun) => ids.approvalId],
    ['tool', defer, ({ ids }: Begun) => ids.callId],
  ] as const)(
    'is open without the workflow of an open %s, and a violation later',
    async (kind, make, idOf) => {
      const message = `${kind}/${idOf(await make())} is open in the log, and Temporal has no workflow for it`;
      expect(await compare()).toEqual({ checked: 0, open: [message], broken: [] });
      expect(await compare({ late: true })).toEqual({ checked: 0, open: [], broken: [message] });
    },
  );

  it.each([
    ['an approval that was answered', ask, 'ApprovalDenied', 'approval'],
    ['an approval that expired', ask, 'ApprovalExpired', 'approval'],
    ['an approval that was voided', ask, 'ApprovalVoided', 'approval'],
    ['an approval whose turn is cancelled', ask, 'TurnCancelRequested', 'approval'],
    ['a tool call with an unknown outcome', defer, 'ToolCallUnknown', 'tool'],
    ['a tool call whose turn has failed', defer, 'TurnFailed', 'tool'],
  ] as const)('is open for a workflow of %s, and a violation later', async (_what, make, end, kind) => {
    const begun = await make();
    const id = `${kind}/${kind === 'tool' ? begun.ids.callId : begun.ids.approvalId}`;
    await start(id);
    expect(await compare()).toEqual(clean(1));
    await say(begun.stream, end, begun.ids);
    const message = `workflow ${id} is open, but its item in the log is not`;
    expect(await compare()).toEqual({ checked: 1, open: [message], broken: [] });
    expect(await compare({ late: true })).toEqual({ checked: 1, open: [], broken: [message] });
  });

  it('may wait until the next try of an ended call was due', async () => {
    const { stream, ids } = await defer(LATER);
    await start(`tool/${ids.callId}`);
    await say(stream, 'ToolCallFailed', ids);
    expect(await compare({ late: true })).toEqual(clean(1));
  });

  it('is reported for a workflow without an item', async () => {
    const id = `approval/${randomUUID()}`;
    await start(id);
    expect(await compare({ late: true })).toMatchObject({
      broken: [`workflow ${id} is open, but its item in the log is not`],
    });
  });
});
