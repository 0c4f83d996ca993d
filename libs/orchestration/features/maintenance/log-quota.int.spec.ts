import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { CallHandler, ExecutionContext } from '@nestjs/common';
import * as contracts from '@antiphon/contracts/agent';
import { createTestDatabase } from '@antiphon/testing';
import { lastValueFrom, of } from 'rxjs';
import {
  WORKSPACE,
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld } from '@antiphon/agent-features/testing/agent-world';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';
import { addsToLog, LogQuotaInterceptor } from './log-quota.interceptor.js';
import { LogUsage } from './log-usage.js';

jest.setTimeout(30_000);

/** Requests that a full log serves: they read, end, cancel, erase or delete. */
const SERVED: ReadonlySet<string> = new Set(
  [
    ...[contracts.cancelTurn, contracts.cancelTask, contracts.cancelRun, contracts.stopPlan],
    ...[contracts.answerApproval, contracts.checkApprovalInput, contracts.controlAgent],
    ...[contracts.eraseFiles, contracts.deleteChat],
    contracts.detachChatFile,
    ...[contracts.deleteWorkflow, contracts.validateWorkflow, contracts.claimTask, contracts.renewTask],
    ...[contracts.finishTask, contracts.setCredential, contracts.removeCredential],
    ...[contracts.setSecret, contracts.removeSecret],
    ...[contracts.rotateMasterKey, contracts.getPlan, contracts.beginToolCall],
    ...[contracts.changePeer, contracts.replayDelivery],
    ...[contracts.testProvider, contracts.removeProvider, contracts.listProviderModels],
  ].map(({ subject }) => subject),
);
const isRead = (subject: string): boolean =>
  /\.(get|list(-\w+)?|read\w*|stat|history|context|metrics|remembering)$/.test(subject);
const SUBJECTS = Object.values(contracts).flatMap((contract) =>
  contract !== null && typeof contract === 'object' && 'subject' in contract && 'request' in contract
    ? [(contract as { subject: string }).subject]
    : [],
);

describe('a request to the agent service', () => {
  it.each(SUBJECTS)('%s either adds to the log, or is served while it is full', (subject) => {
    const isServed = SERVED.has(subject) || isRead(subject);
    expect([subject, addsToLog(subject, {})]).toEqual([subject, !isServed]);
  });

  it('that only deletes is served', () => {
    const { changeAgent, changeFiles, changeMessage } = contracts;
    const remove = { op: 'delete', path: 'a' };
    expect(addsToLog(changeFiles.subject, { changes: [remove] })).toBe(false);
    expect(addsToLog(changeFiles.subject, { changes: [remove, { op: 'write' }] })).toBe(true);
    expect(addsToLog(changeAgent.subject, { changes: { model: 'x' } })).toBe(true);
    expect(addsToLog(changeMessage.subject, { content: null })).toBe(false);
    expect(addsToLog(changeMessage.subject, { content: 'x' })).toBe(true);
  });
});

describe('the log of a workspace over its quota', () => {
  let world: AgentWorld;
  beforeAll(async () => {
    world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  });
  afterAll(() => world?.close());

  const configWith = (maxLogBytes: number) => {
    const config = testConfig({ tools: ['send_message'] });
    return { ...config, retention: { ...config.retention, maxLogBytes } };
  };
  const usageWith = (maxLogBytes: number): LogUsage =>
    new LogUsage({ pool: world.pool, config: configWith(maxLogBytes), logger: undefined as never });
  const answer = async (usage: LogUsage, subject: string, request: object): Promise<unknown> => {
    const context = {
      getType: () => 'rpc',
      switchToRpc: () => ({ getData: () => request, getContext: () => ({ getSubject: () => subject }) }),
    } as unknown as ExecutionContext;
    const handler: CallHandler = { handle: () => of('handled') };
    return lastValueFrom(new LogQuotaInterceptor(usage).intercept(context, handler));
  };

  it('takes no new work, ends its open turns, and serves other workspaces and deletions', async () => {
    const full = world.process({ config: configWith(1) });
    const { logUsage } = full.runtime.services;
    let asked = 0;
    world.model.reply = async () => {
      // The quota is reached while the turn runs.
      await logUsage.count();
      return asked++ === 0
        ? asksFor({ name: 'send_message', input: { agent: 'main', text: 'hi' } })
        : says('done');
    };
    const { sessionId } = await submitTo(full, { address: newAddress('main') }, 'work');
    const events = await world.ended(sessionId);
    expect(events.at(-1)?.type).toBe('TurnCompleted');
    expect(events.find(({ type }) => type === 'ToolCallFailed')?.data).toMatchObject({ code: 'LOG.QUOTA' });
    const { submitTurn, changeFiles } = contracts;
    const refused = { ok: false, error: { kind: 'exhausted', code: 'LOG.QUOTA' } };
    expect(await answer(logUsage, submitTurn.subject, { workspace: WORKSPACE })).toMatchObject(refused);
    expect(await answer(logUsage, submitTurn.subject, { workspace: 'other' })).toBe('handled');
    const removal = { workspace: WORKSPACE, changes: [{ op: 'delete', path: 'a' }] };
    expect(await answer(logUsage, changeFiles.subject, removal)).toBe('handled');
  });

  it('counts new events only, as a count of all events does', async () => {
    const [one, other] = [usageWith(Number.MAX_SAFE_INTEGER), usageWith(1)];
    await one.count();
    world.model.reply = async () => says('done');
    const own = world.process({ config: configWith(2 ** 40) });
    const { sessionId } = await submitTo(own, { address: newAddress('main') }, 'more');
    await world.ended(sessionId);
    await one.count();
    await other.count();
    const valueOf = (usage: LogUsage): unknown => {
      try {
        usage.requireRoom(WORKSPACE);
      } catch (error) {
        return (error as { data: { value: number } }).data.value;
      }
      return undefined;
    };
    const all = Number(valueOf(other));
    expect(all).toBeGreaterThan(1_000);
    const exact = new LogUsage({ pool: world.pool, config: configWith(all + 1), logger: undefined as never });
    await exact.count();
    expect(valueOf(exact)).toBeUndefined();
    expect(valueOf(one)).toBeUndefined();
    Object.assign(one, { deps: { pool: world.pool, config: configWith(1) } });
    expect(valueOf(one)).toBe(all);
  });
});
