import { z } from 'zod';
import { WorkspaceId } from '../log/stored-event.js';
import { defineRequest } from '../messaging/index.js';
import { ProviderSecret } from './credential-requests.js';
import { ConnectableKind } from './provider-events.js';
import { Caller, IdempotencyKey } from './requests.js';

/** Name of a provider that is connected at run time. */
export const ProviderName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be 1 to 64 letters, digits, dots, dashes or underscores')
  .describe('Name of the provider, as agents name it.');

/** Definition of a provider as clients send it. */
export const ProviderSpec = z.strictObject({
  kind: ConnectableKind.describe('Which API it speaks.'),
  baseUrl: z
    .string()
    .min(1)
    .max(2_048)
    .optional()
    .describe('Base of its paths. Default: the address of the vendor.'),
  secret: ProviderSecret.optional(),
});
export type ProviderSpec = z.output<typeof ProviderSpec>;

/** A provider, configured or connected, without its key. */
export const ProviderView = z.object({
  name: z.string(),
  kind: z.string(),
  baseUrl: z.string().nullable().describe('Null for a kind without an address.'),
  origin: z.enum(['configuration', 'connected']),
  key: z
    .enum(['stored', 'variable', 'none'])
    .describe('Where its key comes from: stored encrypted, an environment variable, or nowhere.'),
  keyVariable: z.string().nullable().describe('Environment variable of the key, if one is configured.'),
  ready: z.boolean().describe('False if it needs a key and has none.'),
  scripted: z.boolean().describe('True if no model writes the answers.'),
  defaultModel: z.string().nullable().describe('Model of its kind that most agents begin with.'),
  paused: z
    .object({ until: z.iso.datetime() })
    .nullable()
    .describe('Present while its circuit is open after failures in a row.'),
  connectedBy: z.string().nullable().describe('Null for a configured provider.'),
  connectedAt: z.iso.datetime().nullable(),
});
export type ProviderView = z.output<typeof ProviderView>;

/** A model that a provider lists. Null where the provider and the configuration do not say it. */
export const ProviderModel = z.object({
  id: z.string(),
  contextTokens: z.int().positive().nullable(),
  images: z.boolean().nullable().describe('Whether it takes images.'),
  price: z
    .object({
      inputMicroUsdPerMtok: z.int().nonnegative(),
      outputMicroUsdPerMtok: z.int().nonnegative(),
    })
    .nullable()
    .describe('Known price of a million tokens. Null: calls are refused under a limit in dollars.'),
});
export type ProviderModel = z.output<typeof ProviderModel>;

/** Outcomes of a test that failed. Each has its own remedy. */
export const PROVIDER_PROBLEMS = [
  'wrong_key',
  'no_access',
  'busy',
  'unreachable',
  'not_found',
  'unexpected',
] as const;

/** Outcome of a test of a provider. It is no error of the request. */
export const ProviderTest = z.object({
  works: z.boolean(),
  problem: z
    .enum(PROVIDER_PROBLEMS)
    .nullable()
    .describe(
      '`wrong_key` (401), `no_access` (402, 403), `busy` (429, 5xx), `unreachable` (DNS, TLS, timeout), ' +
        '`not_found` (404: not this kind of server), or `unexpected`.',
    ),
  status: z.int().nullable().describe('HTTP status of the provider, if it sent one.'),
  message: z.string().describe('For people. It never has the key.'),
  durationMs: z.int().nonnegative(),
  models: z.array(ProviderModel).describe('Empty if the provider lists none.'),
});
export type ProviderTest = z.output<typeof ProviderTest>;

const named = { workspace: WorkspaceId, name: ProviderName };

/** Lists the providers that agents of a workspace can call, configured ones first. */
export const listProviders = defineRequest({
  subject: 'cmd.agent.provider.list',
  request: z.strictObject({ workspace: WorkspaceId }),
  reply: z.object({ providers: z.array(ProviderView) }),
  timeoutMs: 5_000,
});

/** Asks a provider for its models, and stores nothing. Errors: `PROVIDER.ADDRESS_REFUSED`. */
export const testProvider = defineRequest({
  subject: 'cmd.agent.provider.test',
  request: z.strictObject({
    workspace: WorkspaceId,
    ...ProviderSpec.shape,
    model: z.string().min(1).max(200).optional(),
  }),
  reply: ProviderTest,
  timeoutMs: 60_000,
});

/**
 * Connects a provider, or changes a connected one. Errors: `PROVIDER.CONFIGURED`,
 * `PROVIDER.EXISTS`, `PROVIDER.KEY_MISSING`, `PROVIDER.ADDRESS_REFUSED`, `PROVIDER.LIMIT`.
 */
export const connectProvider = defineRequest({
  subject: 'cmd.agent.provider.connect',
  request: z.strictObject({
    ...named,
    ...ProviderSpec.shape,
    caller: Caller,
    /** True if a provider with this name must not exist. */
    isNew: z.boolean().default(false),
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: ProviderView,
  timeoutMs: 15_000,
});

/** Removes a connected provider with its key. Errors: `PROVIDER.CONFIGURED`. */
export const removeProvider = defineRequest({
  subject: 'cmd.agent.provider.remove',
  request: z.strictObject({ ...named, caller: Caller }),
  reply: z.object({ removed: z.boolean() }),
  timeoutMs: 15_000,
});

/** Tests a provider that exists, with its own key. Errors: `PROVIDER.NOT_FOUND`. */
export const listProviderModels = defineRequest({
  subject: 'cmd.agent.provider.models',
  request: z.strictObject({
    workspace: WorkspaceId,
    name: z.string().min(1).max(200),
  }),
  reply: ProviderTest,
  timeoutMs: 60_000,
});
