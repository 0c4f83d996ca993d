import { Controller, Inject } from '@nestjs/common';
import { listProviderModels, listProviders, testProvider } from '@antiphon/contracts/agent';
import type { ProviderTest, ProviderView } from '@antiphon/contracts/agent';
import type { AntiphonConfig, ProviderConfig } from '@antiphon/config';
import { notFound } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { CONFIG, ENVIRONMENT } from '@antiphon/service-host';
import type { Environment } from '@antiphon/service-host';
import type { z } from 'zod';
import type { Models, ProviderLook } from '../adapters/create-models.js';
import { CircuitBreakers } from '../breakers/circuit-breaker.js';
import { CredentialStore } from '../credentials/credential-store.js';
import { MODELS } from '../providers.tokens.js';
import { ConnectedProviders } from './connected-providers.js';
import { toFailedTest } from '../adapters/list-models.js';
import { checkAddress } from './provider-address.js';
import { configuredView, connectedView } from './provider-views.js';

/** Handles `cmd.agent.provider.list`, `.test` and `.models`. */
@Controller()
export class ReadProviders {
  constructor(
    @Inject(ConnectedProviders) private readonly connected: ConnectedProviders,
    @Inject(CredentialStore) private readonly credentials: CredentialStore,
    @Inject(CircuitBreakers) private readonly breakers: CircuitBreakers,
    @Inject(MODELS) private readonly models: Models,
    @Inject(CONFIG) private readonly config: AntiphonConfig,
    @Inject(ENVIRONMENT) private readonly env: Environment,
  ) {}

  @HandleRequest(listProviders)
  async list({ workspace }: z.output<typeof listProviders.request>): Promise<{ providers: ProviderView[] }> {
    const [stored, connected] = await Promise.all([
      this.credentials.list(workspace),
      this.connected.list(workspace),
    ]);
    const circuits = this.breakers.openCircuitsOf(workspace);
    const circuitOf = (name: string) => circuits.get(name) ?? null;
    const configured = this.config.providers.map((one) => {
      const hasStoredKey = stored.some(({ provider }) => provider === one.name);
      return configuredView(one, this.env, hasStoredKey, circuitOf(one.name));
    });
    // A name of the configuration wins over a connected one.
    const others = connected.filter(({ name }) => !configured.some((one) => one.name === name));
    return { providers: [...configured, ...others.map((one) => connectedView(one, circuitOf(one.name)))] };
  }

  @HandleRequest(testProvider)
  async test({
    workspace,
    kind,
    baseUrl: address,
    secret,
    model,
  }: z.output<typeof testProvider.request>): Promise<ProviderTest> {
    const baseUrl = address ?? null;
    await checkAddress(workspace, kind, baseUrl);
    const storedKey = false;
    const provider = { name: kind, kind, baseUrl, apiKeyEnv: null, storedKey, promptCache: false };
    return this.look({ workspace, provider, secret: secret ?? null, model });
  }

  @HandleRequest(listProviderModels)
  async listModels({ workspace, name }: z.output<typeof listProviderModels.request>): Promise<ProviderTest> {
    const provider = await this.find(workspace, name);
    const secret = await this.credentials.read(workspace, name);
    return this.look({ workspace, provider, ...(secret === null ? {} : { secret }) });
  }

  private async find(workspace: string, name: string): Promise<ProviderConfig> {
    const configured = this.config.providers.find((one) => one.name === name);
    if (configured) return configured;
    await this.connected.read(workspace);
    const connected = this.connected.find(workspace, name);
    if (connected) return connected;
    throw notFound('PROVIDER.NOT_FOUND', `there is no provider "${name}"`);
  }

  private async look(look: ProviderLook): Promise<ProviderTest> {
    const startedAt = performance.now();
    const durationMs = (): number => Math.round(performance.now() - startedAt);
    try {
      const models = await this.models.listModels(look);
      const message = `works · ${models.length === 1 ? '1 model' : `${models.length} models`}`;
      return { works: true, problem: null, status: null, message, durationMs: durationMs(), models };
    } catch (error) {
      return toFailedTest(error, durationMs());
    }
  }
}
