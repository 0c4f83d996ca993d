import { describe, expect, it } from '@jest/globals';
import type { AntiphonConfig } from '@antiphon/config';
import { LOCAL_OPERATOR } from '../access/authenticator.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { createStatusReader } from './status.controller.js';

const config = {
  ...{ plugins: [], channels: [], mcp: { servers: [] }, bindings: [], features: {} },
  agents: [{ id: 'main', provider: 'scripted', model: 'scripted' }],
  providers: [{ name: 'scripted', kind: 'scripted' }],
} as unknown as AntiphonConfig;
const REPORT = {
  service: 'agent' as const,
  healthy: true,
  pid: 1,
  uptimeMs: 1,
  version: '1',
  checks: [],
  facts: {},
};

/** Returns the provider of a status. A request that has no reply is refused. */
const providerWith = async (replies: Readonly<Record<string, unknown>>) => {
  const requests = {
    request: ({ subject }: { readonly subject: string }) => {
      if (subject.endsWith('health.check')) return Promise.resolve(REPORT);
      const reply = replies[subject];
      return reply === undefined ? Promise.reject(new Error('no service answers')) : Promise.resolve(reply);
    },
  } as unknown as GatewayRequests;
  const read = createStatusReader({
    ...{ requests, config, version: '1', uptimeMs: () => 1, temporalUi: null },
    ownHealth: () => Promise.resolve(REPORT),
    pool: { query: () => Promise.reject(new Error('down')) } as never,
  });
  return (await read(LOCAL_OPERATOR)).provider;
};
const mainAt = (provider: string, model: string) => ({
  'cmd.agent.agent.get': { agent: { provider, model } },
});

describe('a part of a status that does not work', () => {
  it('has the time since which this gateway has seen it so', async () => {
    let now = Date.parse('2026-11-22T10:00:00.000Z');
    const down = new Set<string>();
    const checks = () => [{ name: 'temporal', healthy: !down.has('temporal'), latencyMs: 1 }];
    const requests = {
      request: ({ subject }: { readonly subject: string }) =>
        subject.endsWith('health.check') && !down.has(subject)
          ? Promise.resolve({ ...REPORT, checks: checks() })
          : Promise.reject(new Error('no service answers')),
    } as unknown as GatewayRequests;
    const read = createStatusReader({
      ...{ requests, config, version: '1', uptimeMs: () => 1, temporalUi: null, now: () => now },
      ownHealth: () => Promise.resolve(REPORT),
      pool: { query: () => Promise.reject(new Error('down')) } as never,
    });
    const readAfter = async (ms: number) => {
      now += ms;
      const { services, engines } = await read(LOCAL_OPERATOR);
      return [services['metering']?.since, engines['temporal']?.since];
    };
    expect(await readAfter(0)).toEqual([undefined, undefined]);
    down.add('cmd.metering.health.check').add('temporal');
    expect(await readAfter(1_000)).toEqual(['2026-11-22T10:00:01.000Z', '2026-11-22T10:00:01.000Z']);
    down.delete('temporal');
    expect(await readAfter(1_000)).toEqual(['2026-11-22T10:00:01.000Z', undefined]);
    down.delete('cmd.metering.health.check');
    expect(await readAfter(1_000)).toEqual([undefined, undefined]);
    down.add('temporal');
    expect(await readAfter(1_000)).toEqual([undefined, '2026-11-22T10:00:04.000Z']);
  });
});

describe('the provider of a status', () => {
  it('is that of the configuration while the agent service does not answer', async () =>
    expect(await providerWith({})).toEqual({ name: 'scripted', kind: 'scripted', model: 'scripted' }));

  it('has the model that the default agent got at run time', async () =>
    expect(await providerWith(mainAt('scripted', 'other'))).toEqual({
      ...{ name: 'scripted', kind: 'scripted', model: 'other' },
    }));

  it('has the kind of a connected provider', async () => {
    const listed = { 'cmd.agent.provider.list': { providers: [{ name: 'mine', kind: 'anthropic' }] } };
    expect(await providerWith({ ...mainAt('mine', 'claude'), ...listed })).toEqual({
      ...{ name: 'mine', kind: 'anthropic', model: 'claude' },
    });
  });

  it('has no kind where the provider was removed, or no list of them can be had', async () => {
    const gone = { name: 'gone', kind: '', model: 'm' };
    expect(await providerWith(mainAt('gone', 'm'))).toEqual(gone);
    const empty = { 'cmd.agent.provider.list': { providers: [] } };
    expect(await providerWith({ ...mainAt('gone', 'm'), ...empty })).toEqual(gone);
  });
});
