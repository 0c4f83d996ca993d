import type { ProviderEvent } from '@antiphon/contracts/agent';
import { assertNever, conflict, rejected } from '@antiphon/kernel';
import type { Decider } from '@antiphon/kernel';

const schemaVersion = 1;

/** Maximum number of connected providers of a workspace. */
export const MAX_CONNECTED_PROVIDERS = 50;

/** A provider that was connected at run time. */
export interface ConnectedProvider {
  readonly name: string;
  readonly kind: string;
  readonly baseUrl: string | null;
  /** Id of its stored key; null without one. */
  readonly credentialId: string | null;
  readonly connectedBy: string;
  readonly connectedAt: string;
  /** Digest of the request that connected it, if that had an idempotency key. */
  readonly request?: string | undefined;
}

/** Connected providers of a workspace by name, oldest first. */
export type ProviderRegistry = ReadonlyMap<string, ConnectedProvider>;

interface Command<T extends string> {
  readonly type: T;
  readonly name: string;
  readonly actor: string;
  readonly now: string;
}
export interface ConnectProvider extends Command<'Connect'> {
  readonly kind: string;
  readonly baseUrl: string | null;
  /** Id of a new key; null keeps the stored one. */
  readonly credentialId: string | null;
  /** True if a provider with this name must not exist. */
  readonly isNew: boolean;
  readonly request?: string | undefined;
}
export type ProviderCommand = ConnectProvider | Command<'Remove'>;

const connect = (
  { name, kind, baseUrl, credentialId, actor, now: at, isNew, request }: ConnectProvider,
  registry: ProviderRegistry,
): ProviderEvent[] => {
  const known = registry.get(name);
  const change = { name, kind, baseUrl, actor, at };
  if (!known) {
    if (registry.size >= MAX_CONNECTED_PROVIDERS)
      throw rejected(
        'PROVIDER.LIMIT',
        `the workspace has ${MAX_CONNECTED_PROVIDERS} connected providers. What to do: remove one`,
      );
    const repeat = request === undefined ? {} : { request };
    return [{ type: 'ProviderConnected', schemaVersion, data: { ...change, credentialId, ...repeat } }];
  }
  const isSame = known.kind === kind && known.baseUrl === baseUrl;
  if (isNew) {
    if (request !== undefined && request === known.request && isSame) return [];
    throw conflict(
      'PROVIDER.EXISTS',
      `a provider "${name}" is connected. What to do: choose another name, or change this one`,
    );
  }
  if (isSame && credentialId === null) return [];
  const data = { ...change, credentialId: credentialId ?? known.credentialId };
  return [{ type: 'ProviderReconnected', schemaVersion, data }];
};

const decide = (command: ProviderCommand, registry: ProviderRegistry): ProviderEvent[] => {
  switch (command.type) {
    case 'Connect':
      return connect(command, registry);
    case 'Remove': {
      const { name, actor, now: at } = command;
      if (!registry.has(name)) return [];
      return [{ type: 'ProviderRemoved', schemaVersion, data: { name, actor, at } }];
    }
    default:
      return assertNever(command);
  }
};

const evolve = (registry: ProviderRegistry, { type, data }: ProviderEvent): ProviderRegistry => {
  const next = new Map(registry);
  // Secrets have a stream of their own.
  if (type === 'SecretStored' || type === 'SecretRemoved') return registry;
  if (type === 'ProviderRemoved') {
    next.delete(data.name);
    return next;
  }
  const { name, kind, baseUrl, credentialId, actor: connectedBy, at: connectedAt } = data;
  const request = type === 'ProviderConnected' ? data.request : registry.get(name)?.request;
  next.set(name, {
    ...{ name, kind, baseUrl, credentialId, connectedBy, connectedAt },
    ...(request === undefined ? {} : { request }),
  });
  return next;
};

/**
 * Decides changes of the connected providers of a workspace. A repeated change adds no fact. Throws
 * `PROVIDER.EXISTS` and `PROVIDER.LIMIT`.
 */
export const providerDecider: Decider<ProviderRegistry, ProviderCommand, ProviderEvent> = {
  initialState: () => new Map(),
  decide,
  evolve,
};
