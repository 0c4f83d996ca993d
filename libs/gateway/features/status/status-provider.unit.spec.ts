import { describe, expect, it } from '@jest/globals';
import type { AntiphonConfig } from '@antiphon/config';
import { LOCAL_OPERATOR } from '../access/authenticator.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { createStatusReader } from './status.controller.js';

const config = {
  ...{ plugins: [], bindings: [], features: {} },
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
