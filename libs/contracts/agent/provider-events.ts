import { z } from 'zod';
import { event } from '../log/stored-event.js';

/** Kinds that can be connected at run time, in the order in which people are offered them. */
export const CONNECTABLE_KINDS = [
  'anthropic',
  'openai',
  'openrouter',
  'gemini',
  'azure-openai',
  'ollama',
  'openai-compatible',
] as const;
export const ConnectableKind = z.enum(CONNECTABLE_KINDS);
export type ConnectableKind = z.infer<typeof ConnectableKind>;

const change = {
  /** Name of the provider or secret in its workspace. */
  name: z.string(),
  /** Principal that caused the change. */
  actor: z.string().min(1).max(200),
  at: z.iso.datetime(),
};
const definition = {
  /** Kinds of newer versions are kept. */
  kind: z.string().max(64),
  /** Null for the address of the vendor. It holds no credentials. */
  baseUrl: z.string().max(2_048).nullable(),
  /** Id of the stored key; null for a provider without one. The key itself is in no event. */
  credentialId: z.uuid().nullable(),
};

/** Agents of the workspace may call the provider from here on. */
export const ProviderConnected = event('ProviderConnected', {
  ...change,
  ...definition,
  /** Digest of the caller and its idempotency key. */
  request: z.string().max(100).optional(),
});
/** The kind, the address or the key is another one. */
export const ProviderReconnected = event('ProviderReconnected', { ...change, ...definition });
/** Calls of the provider fail from here on. Its key is deleted in the same commit. */
export const ProviderRemoved = event('ProviderRemoved', change);

/** A secret of the workspace is stored, or replaced. The secret itself is in no event. */
export const SecretStored = event('SecretStored', { ...change, credentialId: z.uuid() });
/** A secret of the workspace is deleted in the same commit. */
export const SecretRemoved = event('SecretRemoved', change);

/** Every event of a `provider-<id>` stream: of the providers, or of the secrets, of a workspace. */
export const ProviderEvent = z.discriminatedUnion('type', [
  ProviderConnected,
  ProviderReconnected,
  ProviderRemoved,
  SecretStored,
  SecretRemoved,
]);
export type ProviderEvent = z.infer<typeof ProviderEvent>;

/** The id takes a UUID that is derived from the workspace (`providersIdOf`, `secretsIdOf`). */
export const providerStream = (providersId: string): string => `provider-${providersId}`;
