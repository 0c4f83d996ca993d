import { Controller, Inject } from '@nestjs/common';
import {
  ProviderEvent,
  listSecrets,
  providerStream,
  readSecret,
  removeSecret,
  setSecret,
} from '@antiphon/contracts/agent';
import type { SecretView } from '@antiphon/contracts/agent';
import { eventForms, secretsIdOf } from '@antiphon/agent-log';
import { AggregateStore } from '@antiphon/event-store';
import type { EventStore, EventStorePg } from '@antiphon/event-store';
import { isoTime } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { secretsDecider } from '@antiphon/providers-domain';
import type { SecretCommand, Secrets } from '@antiphon/providers-domain';
import { CLOCK, DATABASE_POOL, EVENT_STORE, IDS, LOGGER } from '@antiphon/service-host';
import type pg from 'pg';
import type { z } from 'zod';
import { commitWithFact } from './commit-with-fact.js';
import { CredentialStore } from './credential-store.js';

type RequestOf<T extends { readonly request: z.ZodType }> = z.output<T['request']>;

const PREFIX = 'secret:';
/** Name of a secret among all credentials of a workspace. A provider has no name with a colon. */
const credentialOf = (name: string): string => `${PREFIX}${name}`;

/**
 * Handles `cmd.agent.secret.*`: the secrets that tools and plug-ins use. The fact and the encrypted
 * value commit together. Only the sandbox service may read a value.
 */
@Controller()
export class SecretsHandler {
  readonly #streams: AggregateStore<Secrets, ProviderEvent>;

  constructor(
    @Inject(CredentialStore) private readonly credentials: CredentialStore,
    @Inject(DATABASE_POOL) private readonly pool: pg.Pool,
    @Inject(EVENT_STORE) private readonly store: EventStore & EventStorePg,
    @Inject(IDS) ids: Ids,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.#streams = new AggregateStore({
      ...{ store, decider: secretsDecider, ...eventForms(ProviderEvent, ids, null) },
      streamOf: (workspace) => providerStream(secretsIdOf(workspace)),
    });
  }

  @HandleRequest(setSecret)
  async set({ workspace, name, secret, caller }: RequestOf<typeof setSecret>): Promise<SecretView> {
    const row = this.credentials.seal(workspace, credentialOf(name), secret, caller);
    const { credentialId, createdBy, createdAt } = row;
    await this.#change(workspace, { type: 'Store', credentialId, ...this.#origin(name, caller) }, (client) =>
      this.credentials.writeWithin(client, row),
    );
    this.logger.info({ workspace, secret: name, caller }, 'secret stored');
    return { name, createdBy, createdAt: createdAt.toISOString() };
  }

  @HandleRequest(listSecrets)
  async list({ workspace }: RequestOf<typeof listSecrets>): Promise<{ secrets: SecretView[] }> {
    const stored = await this.credentials.list(workspace);
    const secrets = stored.flatMap(({ provider, createdBy, createdAt }) =>
      provider.startsWith(PREFIX) ? [{ name: provider.slice(PREFIX.length), createdBy, createdAt }] : [],
    );
    return { secrets };
  }

  @HandleRequest(removeSecret)
  async remove({ workspace, name, caller }: RequestOf<typeof removeSecret>): Promise<{ removed: boolean }> {
    const removed = await this.#change(
      workspace,
      { type: 'Remove', ...this.#origin(name, caller) },
      (client) => this.credentials.removeWithin(client, workspace, credentialOf(name)),
    );
    if (removed) this.logger.info({ workspace, secret: name, caller }, 'secret removed');
    return { removed };
  }

  @HandleRequest(readSecret)
  async read({ workspace, name }: RequestOf<typeof readSecret>): Promise<{ secret: string | null }> {
    return { secret: await this.credentials.read(workspace, credentialOf(name)) };
  }

  #origin(name: string, actor: string) {
    return { name, actor, now: isoTime(this.clock) };
  }

  /** Commits a fact with the change of the stored value. Returns false without a fact. */
  async #change(
    workspace: string,
    command: SecretCommand,
    change: (client: pg.ClientBase) => Promise<void>,
  ): Promise<boolean> {
    const { pool, store } = this;
    const { isAppended } = await this.#streams.commit(workspace, workspace, ({ state }) => ({
      events: secretsDecider.decide(command, state),
      join: (own) => commitWithFact({ pool, store, category: 'provider' }, workspace, own, change),
    }));
    this.credentials.forget();
    return isAppended;
  }
}
