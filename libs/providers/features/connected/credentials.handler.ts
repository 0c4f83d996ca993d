import { Controller, Inject } from '@nestjs/common';
import {
  listCredentials,
  removeCredential,
  rotateMasterKey,
  setCredential,
  type CredentialView,
} from '@antiphon/contracts/agent';
import type { AntiphonConfig } from '@antiphon/config';
import { conflict, notFound } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { CONFIG, LOGGER } from '@antiphon/service-host';
import type { z } from 'zod';
import { ConnectedProviders } from './connected-providers.js';
import { CredentialStore, type Rewrapped } from '../credentials/credential-store.js';

/** Handles `cmd.agent.credential.*`. A secret comes in and never goes out. */
@Controller()
export class Credentials {
  constructor(
    @Inject(CredentialStore) private readonly store: CredentialStore,
    @Inject(CONFIG) private readonly config: Pick<AntiphonConfig, 'providers'>,
    @Inject(LOGGER) private readonly logger: Logger,
    @Inject(ConnectedProviders) private readonly connected: ConnectedProviders,
  ) {}

  @HandleRequest(setCredential)
  async set({
    workspace,
    provider,
    secret,
    caller,
  }: z.output<typeof setCredential.request>): Promise<CredentialView> {
    await this.refuseConnected(workspace, provider);
    if (!this.isConfigured(provider))
      throw notFound('CREDENTIAL.PROVIDER_UNKNOWN', 'no provider with this name is configured');
    const view = await this.store.set(workspace, provider, secret, caller);
    this.logger.info({ workspace, provider, caller }, 'credential stored');
    return view;
  }

  @HandleRequest(listCredentials)
  async list({
    workspace,
  }: z.output<typeof listCredentials.request>): Promise<{ credentials: CredentialView[] }> {
    const all = await this.store.list(workspace);
    // Names with a colon are secrets of channels and tools, which their own routes show.
    return { credentials: all.filter(({ provider }) => !provider.includes(':')) };
  }

  @HandleRequest(removeCredential)
  async remove({
    workspace,
    provider,
  }: z.output<typeof removeCredential.request>): Promise<{ removed: boolean }> {
    await this.refuseConnected(workspace, provider);
    return { removed: await this.store.remove(workspace, provider) };
  }

  @HandleRequest(rotateMasterKey)
  async rotate(): Promise<Rewrapped> {
    const result = await this.store.rewrap();
    this.logger.info({ ...result }, 'data keys rewrapped');
    return result;
  }

  /** The key of a connected provider changes with a fact about the provider. */
  private async refuseConnected(workspace: string, provider: string): Promise<void> {
    if (this.isConfigured(provider)) return;
    const connected = await this.connected.list(workspace);
    if (connected.some(({ name }) => name === provider))
      throw conflict(
        'CREDENTIAL.PROVIDER_CONNECTED',
        `provider "${provider}" was connected at run time. What to do: use /api/v1/providers/${provider}`,
      );
  }

  private isConfigured(provider: string): boolean {
    return this.config.providers.some(({ name }) => name === provider);
  }
}
