import { z } from 'zod';
import {
  listProviders,
  ProviderName,
  ProviderSpec,
  ProviderTest,
  ProviderView,
} from '../agent/provider-requests.js';
import { defineRoute } from './http-route.js';

const PROVIDER = {
  name: 'anthropic',
  kind: 'anthropic',
  baseUrl: 'https://api.anthropic.com',
  origin: 'connected',
  key: 'stored',
  keyVariable: null,
  ready: true,
  scripted: false,
  defaultModel: 'claude-sonnet-4-5',
  paused: null,
  connectedBy: 'key/a2b3c4d5e6f7g2h3',
  connectedAt: '2026-11-27T10:16:00.000Z',
} as const;
const TEST = {
  works: true,
  problem: null,
  status: null,
  message: 'works · 1 model',
  durationMs: 310,
  models: [
    {
      id: 'claude-sonnet-4-5',
      contextTokens: 200_000,
      images: null,
      price: { inputMicroUsdPerMtok: 3_000_000, outputMicroUsdPerMtok: 15_000_000 },
    },
  ],
} as const;
const BODY = { kind: 'anthropic', secret: 'the-key-of-the-provider' } as const;

const ByName = z.object({ name: ProviderName });
/** Configured providers may have other names. */
const ByAnyName = z.object({ name: z.string().min(1).max(200).describe('Name of the provider.') });
const AgentsOfProvider = z
  .array(z.string())
  .describe('Ids of living agents that are set to the provider. Their turns fail until that changes.');

const ADDRESS = {
  400: 'the base URL is missing or cannot be used',
  403: '`PROVIDER.ADDRESS_REFUSED`: only the workspace `default` may name an address',
};
const CONFIGURED = '`PROVIDER.CONFIGURED`: the configuration has a provider with this name';

/** Routes of `/api/v1/providers`. */
export const PROVIDER_ROUTES = {
  listProviders: defineRoute({
    method: 'get',
    path: '/api/v1/providers',
    tag: 'Providers',
    summary: 'List providers',
    description:
      'Returns the providers that agents of the workspace can call, those of the configuration first, without their keys. ' +
      'A name of the configuration wins over a connected provider.',
    access: 'agents:read',
    reply: { schema: listProviders.reply },
    example: { reply: { providers: [PROVIDER] } },
  }),
  testProvider: defineRoute({
    method: 'post',
    path: '/api/v1/providers/test',
    tag: 'Providers',
    summary: 'Test a provider and its key',
    description:
      'Asks a provider for its models, which costs nothing, and stores nothing. A server without a list of models is asked ' +
      'for the shortest answer of `model`. A test that fails is a reply with its cause, not an error.',
    access: 'credentials:manage',
    body: ProviderSpec.extend({
      model: z.string().min(1).max(200).optional().describe('Model to call if the server lists none.'),
    }),
    reply: { schema: ProviderTest },
    example: { body: BODY, reply: TEST },
    problems: ADDRESS,
  }),
  createProvider: defineRoute({
    method: 'post',
    path: '/api/v1/providers',
    tag: 'Providers',
    summary: 'Connect a provider',
    description:
      'Connects a provider for the workspace of the caller. Its key is encrypted and commits with the event ' +
      '`ProviderConnected`. Agents can use it at once, without a restart.',
    access: 'credentials:manage',
    body: ProviderSpec.extend({ name: ProviderName.optional().describe('Default: the kind.') }),
    idempotent: true,
    reply: { schema: ProviderView, status: 201 },
    example: { body: BODY, reply: PROVIDER },
    problems: {
      ...ADDRESS,
      409: `\`PROVIDER.EXISTS\`: one with this name is connected, or ${CONFIGURED}`,
      422: '`PROVIDER.KEY_MISSING` or `PROVIDER.LIMIT`',
    },
  }),
  connectProvider: defineRoute({
    method: 'put',
    path: '/api/v1/providers/{name}',
    tag: 'Providers',
    summary: 'Connect or change a provider',
    description:
      'Connects a provider with this name, or replaces the kind, the address or the key of a connected one. Without `secret` ' +
      'the stored key stays. Another kind or address needs it again, so that no key reaches another server.',
    access: 'credentials:manage',
    params: ByName,
    body: ProviderSpec,
    reply: { schema: ProviderView },
    example: { params: { name: 'anthropic' }, body: BODY, reply: PROVIDER },
    problems: { ...ADDRESS, 409: CONFIGURED, 422: '`PROVIDER.KEY_MISSING` or `PROVIDER.LIMIT`' },
  }),
  removeProvider: defineRoute({
    method: 'delete',
    path: '/api/v1/providers/{name}',
    tag: 'Providers',
    summary: 'Remove a connected provider',
    description:
      'Removes a connected provider and deletes its key. `removed` is false if there was none. `agents` are those that it ' +
      'leaves without a provider.',
    access: 'credentials:manage',
    params: ByName,
    reply: { schema: z.object({ removed: z.boolean(), agents: AgentsOfProvider }) },
    example: { params: { name: 'anthropic' }, reply: { removed: true, agents: [] } },
    problems: { 409: CONFIGURED },
  }),
  listProviderModels: defineRoute({
    method: 'get',
    path: '/api/v1/providers/{name}/models',
    tag: 'Providers',
    summary: 'List the models of a provider',
    description: 'Asks a provider for its models with its own key. The reply is that of a test.',
    access: 'agents:read',
    params: ByAnyName,
    reply: { schema: ProviderTest },
    example: { params: { name: 'anthropic' }, reply: TEST },
    problems: { 404: '`PROVIDER.NOT_FOUND`: there is no provider with this name' },
  }),
} as const;
