import type { ProviderConfig } from '@antiphon/config';
import { notDispatched } from './create-provider.js';
import type { Provider } from './create-provider.js';

/** Providers of workspaces that no configuration names. */
export interface RuntimeProviders {
  /** Reads the providers of a workspace, once until they change. */
  open(workspace: string): Promise<void>;
  /** Reads them again. */
  read(workspace: string): Promise<void>;
  /** Returns a provider of a workspace that was opened, the same object until it changes. */
  find(workspace: string, name: string): ProviderConfig | null;
}

/** Providers by name: those of the configuration for all workspaces, then those of each workspace. */
export class ProviderTable {
  private readonly connected = new Map<string, { readonly config: ProviderConfig; readonly use: Provider }>();

  constructor(
    private readonly configured: ReadonlyMap<string, Provider>,
    private readonly createConnected: (provider: ProviderConfig) => Provider,
    private readonly runtime?: RuntimeProviders,
  ) {}

  isConfigured(name: string): boolean {
    return this.configured.has(name);
  }

  knows(workspace: string, name: string): boolean {
    return this.configured.has(name) || this.find(workspace, name) !== null;
  }

  /** Returns a provider of the configuration, or of a workspace that was opened. */
  get(workspace: string, name: string): Provider {
    const found = this.configured.get(name) ?? this.find(workspace, name);
    if (found === null) throw notDispatched({ kind: 'provider_unknown', provider: name });
    return found;
  }

  /** Makes a provider known. An unknown one may have been connected just now. */
  async open(workspace: string, name: string): Promise<void> {
    if (this.configured.has(name)) return;
    await this.runtime?.open(workspace);
    if (!this.knows(workspace, name)) await this.runtime?.read(workspace);
  }

  async load(workspace: string, name: string): Promise<Provider> {
    await this.open(workspace, name);
    return this.get(workspace, name);
  }

  close(): void {
    for (const provider of this.configured.values()) provider.close();
    for (const { use } of this.connected.values()) use.close();
  }

  /** Idle connections of a former definition end by themselves, and calls in flight use theirs. */
  private find(workspace: string, name: string): Provider | null {
    const config = this.runtime?.find(workspace, name) ?? null;
    const key = `${workspace}\n${name}`;
    const known = this.connected.get(key);
    if (config === null) {
      this.connected.delete(key);
      return null;
    }
    if (known?.config === config) return known.use;
    const use = this.createConnected(config);
    this.connected.set(key, { config, use });
    return use;
  }
}
