import { describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { RESULT_PART_BYTES } from '@antiphon/contracts/sandbox';
import { notFound } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import { remoteToolsDecider } from '@antiphon/sandbox-domain';
import type { RemoteTools } from '@antiphon/sandbox-domain';
import type { HostedCall } from '../calls/tool-source.js';
import { RemoteToolSource, type RemoteToolSourceDeps } from './remote-tool-source.js';
import { ToolWorkerTable } from './tool-worker-table.js';

const declaration = {
  ...{ name: 'weather', description: 'Weather.', inputSchema: {}, idempotent: false },
  ...{ timeoutMs: 5_000, whenAbsent: 'unavailable' as const },
};

const HELD = Buffer.from(`${'x'.repeat(700_000)}needle${'y'.repeat(600_000)}`);
const held = {
  ...{ end: 'held', size: HELD.length, isError: false },
  digest: createHash('sha256').update(HELD).digest('hex'),
};

/** One tool that a program of one gateway serves. Counts the calls that are sent to it. */
const given = (end: object = { end: 'result', content: 'sunny', isError: false }, hasGone = false) => {
  const tools = {
    ...remoteToolsDecider.initialState(),
    tools: new Map([['weather', { declaration, digest: 'a' }]]),
  };
  const workers = new ToolWorkerTable(() => undefined);
  const served = [{ name: 'weather', digest: 'a', workers: 1 }];
  workers.observe({ gateway: 'one', revision: 1, change: { workspace: 'default', tools: served } });
  const sent: unknown[] = [];
  const asked: string[] = [];
  const source = new RemoteToolSource({
    registry: { read: async () => tools as unknown as RemoteTools, kept: () => tools },
    workers,
    requests: {
      request: async ({ subject }: { subject: string }, payload: { offset?: number }) => {
        if (subject === 'cmd.gateway.tool.run') {
          sent.push(payload);
          return end;
        }
        asked.push(subject);
        if (payload.offset === undefined) return {};
        if (hasGone && payload.offset > 0) throw notFound('GATEWAY.RESULT_GONE', 'gone');
        const part = HELD.subarray(payload.offset, payload.offset + RESULT_PART_BYTES);
        return { data: part.toString('base64') };
      },
    },
    nats: { isConnected: () => false },
    ids: { next: () => 'attempt' },
    logger: silentLogger,
  } as unknown as RemoteToolSourceDeps);
  const call = async (begin: () => void, signal: AbortSignal) => {
    const tool = await source.find('default', 'weather');
    return tool?.run({
      ...{ request: { workspace: 'default' }, input: Buffer.from('{}'), timeoutMs: 5_000, signal },
      findObstacle: () => null,
      begin: async () => begin(),
    } as unknown as HostedCall);
  };
  return { sent, asked, call };
};

describe('a call of a remote tool', () => {
  it('is sent to the gateway of a program', async () => {
    const { sent, call } = given();
    expect(await call(() => undefined, new AbortController().signal)).toMatchObject({
      outcome: { outcome: 'completed', content: 'sunny' },
    });
    expect(sent).toHaveLength(1);
  });

  it('with a large result takes it over in parts, and releases it', async () => {
    const { asked, call } = given(held);
    expect(await call(() => undefined, new AbortController().signal)).toMatchObject({
      outcome: { outcome: 'completed', content: HELD.toString() },
    });
    const read = 'cmd.gateway.tool.result';
    expect(asked).toEqual([read, read, read, 'cmd.gateway.tool.release']);
  });

  it.each([
    ['goes away with its gateway', held, true],
    ['is another one', { ...held, digest: '0'.repeat(64) }, false],
  ])('whose large result %s counts as lost', async (_, end, hasGone) => {
    const { sent, call } = given(end, hasGone);
    expect(await call(() => undefined, new AbortController().signal)).toMatchObject({
      outcome: { outcome: 'failed', code: 'TOOL.WORKER_LOST' },
    });
    expect(sent).toHaveLength(1);
  });

  it('is not sent if it is cancelled while its caller permits it', async () => {
    const { sent, call } = given();
    const controller = new AbortController();
    expect(await call(() => controller.abort(), controller.signal)).toMatchObject({
      outcome: { outcome: 'failed', code: 'TOOL.CANCELLED' },
    });
    expect(sent).toEqual([]);
  });
});
