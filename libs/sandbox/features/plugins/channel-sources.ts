import type { ChannelConfig, PluginConfig } from '@antiphon/config';
import { grantedFunctions } from './capabilities.js';
import { DEFAULT_MEMORY_MB, DEFAULT_TIMEOUT_MS } from './plugin-source.js';
import type { PluginSource } from './plugin-source.js';

/** Hosts of the platforms of the bundled plug-ins for channels. */
const HOSTS: Readonly<Record<string, readonly string[]>> = {
  mock: [],
  telegram: ['api.telegram.org'],
  slack: ['slack.com'],
  discord: ['discord.com'],
  whatsapp: ['graph.facebook.com'],
};

/**
 * Lists the bundled plug-ins that configured channels use. One of `[[plugins]]` with the name
 * replaces a bundled one.
 */
export const listChannelSources = (
  directory: string,
  channels: readonly Pick<ChannelConfig, 'plugin'>[],
  configured: readonly Pick<PluginConfig, 'name'>[],
): PluginSource[] => {
  const taken = new Set(configured.map(({ name }) => name));
  const used = [...new Set(channels.map(({ plugin }) => plugin))];
  return used
    .filter((name) => HOSTS[name] !== undefined && !taken.has(name))
    .map((name) => ({
      ...{ name, workspace: '*', path: `${directory}/${name}.wasm`, kind: 'channel', bundled: true },
      capabilities: (HOSTS[name] ?? []).map((host) => `http:${host}`),
      ...{ timeoutMs: DEFAULT_TIMEOUT_MS, memoryMb: DEFAULT_MEMORY_MB, ...grantedFunctions([]) },
      retry: { maxAttempts: null, maxBackoffMs: null },
    }));
};
