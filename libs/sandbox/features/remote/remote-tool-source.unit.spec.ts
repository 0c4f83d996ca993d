import { describe, expect, it } from '@jest/globals';
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

/** One tool that a program of one gateway serves. Counts the calls that are sent to it. */
const given = () => {
  const tools = {
    ...remoteToolsDecider.initialState(),
    tools: new Map([['weather', { declaration, digest: 'a' }]]),
  };
  const workers = new ToolWorkerTable(() => undefined);
  const served = [{ name: 'weather', digest: 'a', workers: 1 }];
  workers.observe({ gateway: 'one', revision: 1, change: { workspace: 'default', tools: served } });
  const sent: unknown[] = [];
  const source = new RemoteToolSource({
    registry: { read: async () => tools as unknown as RemoteTools, kept: () => tools },
    workers,
    requests: {
      request: async (_contract: unknown, payload: unknown) => {
        sent.push(payload);
        return { end: 'result', content: 'sunny', isError: false };
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
  return { sent, call };
};

describe('a call of a remote tool', () => {
  it('is sent to the gateway of a program', async () => {
    const { sent, call } = given();
    expect(await call(() => undefined, new AbortController().signal)).toMatchObject({
      outcome: { outcome: 'completed', content: 'sunny' },
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
