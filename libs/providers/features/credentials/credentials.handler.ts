import { Controller, Inject } from '@nestjs/common';
import {
  listCredentials,
  removeCredential,
  rotateMasterKey,
  setCredential,
  type CredentialView,
} from '@antiphon/contracts/agent';
import type { AntiphonConfig } from '@antiphon/config';
import { notFound } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { CONFIG, LOGGER } from '@antiphon/service-host';
import type { z } from 'zod';
import { CredentialStore, type Rewrapped } from './credential-store.js';

/** Handles `cmd.agent.credential.*`. A secret comes in and never goes out. */
@Controller()
export class Credentials {
  constructor(
    @Inject(CredentialStore) private readonly store: CredentialStore,
    @Inject(CONFIG) private readonly config: Pick<AntiphonConfig, 'providers'>,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  @HandleRequest(setCredential)
  async set({
    workspace,
    provider,
    secret,
    caller,
  }: z.output<typeof setCredential.request>): Promise<CredentialView> {
    if (!this.config.providers.some(({ name }) => name === provider))
      throw notFound('CREDENTIAL.PROVIDER_UNKNOWN', 'no provider with this name is configured');
    const view = await this.store.set(workspace, provider, secret, caller);
    this.logger.info({ workspace, provider, caller }, 'credential stored');
    return view;
  }

  @HandleRequest(listCredentials)
  async list({
    workspace,
  }: z.output<typeof listCredentials.request>): Promise<{ credentials: CredentialView[] }> {
    return { credentials: await this.store.list(workspace) };
  }

  @HandleRequest(removeCredential)
  async remove({
    workspace,
    provider,
  }: z.output<typeof removeCredential.request>): Promise<{ removed: boolean }> {
    return { removed: await this.store.remove(workspace, provider) };
  }

  @HandleRequest(rotateMasterKey)
  async rotate(): Promise<Rewrapped> {
    const result = await this.store.rewrap();
    this.logger.info({ ...result }, 'data keys rewrapped');
    return result;
  }
}
