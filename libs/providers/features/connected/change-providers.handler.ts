import { Controller, Inject } from '@nestjs/common';
import { connectProvider, removeProvider } from '@antiphon/contracts/agent';
import type { ProviderView } from '@antiphon/contracts/agent';
import { PROVIDER_FACTS } from '@antiphon/config';
import type { AntiphonConfig } from '@antiphon/config';
import { digestOf } from '@antiphon/event-store';
import type { EventStorePg, StreamAppend } from '@antiphon/event-store';
import { bug, conflict, isoTime, rejected } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type { ProviderCredentialRow } from '@antiphon/prisma-client';
import { providerDecider } from '@antiphon/providers-domain';
import type { ProviderRegistry } from '@antiphon/providers-domain';
import { CLOCK, CONFIG, DATABASE_POOL, EVENT_STORE, LOGGER } from '@antiphon/service-host';
import type pg from 'pg';
import type { z } from 'zod';
import { commitWithFact } from '../credentials/commit-with-fact.js';
import { CredentialStore } from '../credentials/credential-store.js';
import { ConnectedProviders } from './connected-providers.js';
import { checkAddress } from './provider-address.js';
import { connectedView } from './provider-views.js';

type ConnectRequest = z.output<typeof connectProvider.request>;

/**
 * Handles `cmd.agent.provider.connect` and `.remove`. The fact and the encrypted key commit
 * together. A key comes in and never goes out.
 */
@Controller()
export class ChangeProviders {
  constructor(
    @Inject(ConnectedProviders) private readonly connected: ConnectedProviders,
    @Inject(CredentialStore) private readonly credentials: CredentialStore,
    @Inject(CONFIG) private readonly config: Pick<AntiphonConfig, 'providers'>,
    @Inject(DATABASE_POOL) private readonly pool: pg.Pool,
    @Inject(EVENT_STORE) private readonly store: EventStorePg,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  private get facts() {
    return { pool: this.pool, store: this.store, category: 'provider' };
  }

  @HandleRequest(connectProvider)
  async connect(request: ConnectRequest): Promise<ProviderView> {
    const { workspace, name, kind, secret, caller } = request;
    this.requireUnconfigured(name);
    await checkAddress(workspace, kind, request.baseUrl ?? null);
    const key = secret === undefined ? null : this.credentials.seal(workspace, name, secret, caller);
    await this.connected.commit(workspace, ({ state }) => {
      const baseUrl = request.baseUrl ?? null;
      requireKey(request, state);
      const events = providerDecider.decide(
        {
          type: 'Connect',
          ...{ name, kind, baseUrl, credentialId: key?.credentialId ?? null, isNew: request.isNew },
          ...{ actor: caller, now: isoTime(this.clock), request: requestOf(request) },
        },
        state,
      );
      const change = (client: pg.ClientBase): Promise<void> => this.storeKey(client, request, state, key);
      return { events, join: (own: StreamAppend) => commitWithFact(this.facts, workspace, own, change) };
    });
    this.credentials.forget();
    this.logger.info({ workspace, provider: name, kind, caller }, 'provider connected');
    const found = (await this.connected.list(workspace)).find((one) => one.name === name);
    if (found === undefined)
      throw bug('PROVIDER.NOT_FOUND', `provider "${name}" was removed in the meantime`);
    return connectedView(found, null);
  }

  @HandleRequest(removeProvider)
  async remove({
    workspace,
    name,
    caller,
  }: z.output<typeof removeProvider.request>): Promise<{ removed: boolean }> {
    this.requireUnconfigured(name);
    let removed = false;
    await this.connected.commit(workspace, ({ state }) => {
      const command = { type: 'Remove', name, actor: caller, now: isoTime(this.clock) } as const;
      const events = providerDecider.decide(command, state);
      removed = events.length > 0;
      const change = (client: pg.ClientBase): Promise<void> =>
        this.credentials.removeWithin(client, workspace, name);
      return { events, join: (own: StreamAppend) => commitWithFact(this.facts, workspace, own, change) };
    });
    this.credentials.forget();
    if (removed) this.logger.info({ workspace, provider: name, caller }, 'provider removed');
    return { removed };
  }

  /** A key that an earlier provider of this name left is not for the new one. */
  private storeKey(
    client: pg.ClientBase,
    { workspace, name }: ConnectRequest,
    state: ProviderRegistry,
    key: ProviderCredentialRow | null,
  ): Promise<void> {
    if (key !== null) return this.credentials.writeWithin(client, key);
    if (state.has(name)) return Promise.resolve();
    return this.credentials.removeWithin(client, workspace, name);
  }

  private requireUnconfigured(name: string): void {
    if (!this.config.providers.some((configured) => configured.name === name)) return;
    throw conflict(
      'PROVIDER.CONFIGURED',
      `provider "${name}" is one of the configuration, which decides about it. What to do: store its key with PUT /api/v1/credentials/${name}, or choose another name`,
    );
  }
}

/** Digest of a request with an idempotency key. A repeat of it is no conflict. */
const requestOf = ({ caller, idempotencyKey }: ConnectRequest): string | undefined =>
  idempotencyKey === undefined ? undefined : digestOf({ caller, idempotencyKey });

/**
 * Throws `PROVIDER.KEY_MISSING` if a kind needs a key, or if the stored one would go to another
 * address.
 */
const requireKey = ({ name, kind, baseUrl, secret }: ConnectRequest, state: ProviderRegistry): void => {
  const known = state.get(name);
  if (secret !== undefined) return;
  const isMoved = known !== undefined && (known.kind !== kind || known.baseUrl !== (baseUrl ?? null));
  if (isMoved && known.credentialId !== null)
    throw rejected(
      'PROVIDER.KEY_MISSING',
      'the stored key is not sent to another address or kind. What to do: give the key of the new one',
    );
  if ((known?.credentialId ?? null) === null && PROVIDER_FACTS[kind].keyVariable !== null)
    throw rejected('PROVIDER.KEY_MISSING', `a provider of the kind ${kind} needs a key`);
};
