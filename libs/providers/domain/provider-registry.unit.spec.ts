import { describe, it } from '@jest/globals';
import type { ProviderEvent } from '@antiphon/contracts/agent';
import { specFor } from '@antiphon/testing';
import { MAX_CONNECTED_PROVIDERS, providerDecider } from './provider-registry.decider.js';
import type { ConnectProvider } from './provider-registry.decider.js';

const given = specFor(providerDecider);
const at = '2026-11-27T10:00:00.000Z';
const KEY = '0197b0a0-0000-7000-8000-000000000001';
const OTHER_KEY = '0197b0a0-0000-7000-8000-000000000002';
const data = { name: 'openai', kind: 'openai', baseUrl: null, credentialId: KEY, actor: 'key/a', at };
const connected = (more: Partial<typeof data> & { request?: string } = {}): ProviderEvent => ({
  type: 'ProviderConnected',
  schemaVersion: 1,
  data: { ...data, ...more },
});
const connect = (more: Partial<ConnectProvider> = {}): ConnectProvider => ({
  ...{ type: 'Connect', name: 'openai', kind: 'openai', baseUrl: null, credentialId: KEY, isNew: false },
  ...{ actor: 'key/a', now: at },
  ...more,
});
const remove = { type: 'Remove', name: 'openai', actor: 'key/a', now: at } as const;
const removed: ProviderEvent = {
  type: 'ProviderRemoved',
  schemaVersion: 1,
  data: { name: 'openai', actor: 'key/a', at },
};

describe('the connected providers of a workspace', () => {
  it('has a provider once it is connected', () => given([]).when(connect()).then([connected()]));

  it('keeps the stored key when only the address changes', () =>
    given([connected()])
      .when(connect({ baseUrl: 'https://proxy.example/v1', credentialId: null }))
      .then([
        {
          type: 'ProviderReconnected',
          schemaVersion: 1,
          data: { ...data, baseUrl: 'https://proxy.example/v1' },
        },
      ]));

  it('records another key without the key', () =>
    given([connected()])
      .when(connect({ credentialId: OTHER_KEY }))
      .then([{ type: 'ProviderReconnected', schemaVersion: 1, data: { ...data, credentialId: OTHER_KEY } }]));

  it('adds no fact for a repeated definition', () =>
    given([connected()])
      .when(connect({ credentialId: null }))
      .thenNothing());

  it('refuses a new provider with a name that is taken', () =>
    given([connected()])
      .when(connect({ isNew: true }))
      .thenRejects('PROVIDER.EXISTS'));

  it('joins a repeated request with the same idempotency key', () =>
    given([connected({ request: 'digest' })])
      .when(connect({ isNew: true, request: 'digest' }))
      .thenNothing());

  it('refuses the idempotency key of another definition', () =>
    given([connected({ request: 'digest' })])
      .when(connect({ isNew: true, request: 'digest', kind: 'gemini' }))
      .thenRejects('PROVIDER.EXISTS'));

  it('can be connected again after a removal', () =>
    given([connected(), removed]).when(connect()).then([connected()]));

  it('removes a provider once', () => {
    given([connected()]).when(remove).then([removed]);
    given([connected(), removed]).when(remove).thenNothing();
  });

  it('is limited in number', () =>
    given(Array.from({ length: MAX_CONNECTED_PROVIDERS }, (_, index) => connected({ name: `p${index}` })))
      .when(connect())
      .thenRejects('PROVIDER.LIMIT'));
});
