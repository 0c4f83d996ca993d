import { createHash } from 'node:crypto';
import { constants, open } from 'node:fs/promises';
import type { PluginConfig } from '@antiphon/config';
import { MAX_MODULE_BYTES } from '@antiphon/sandbox-domain';
import { grantedFunctions } from './capabilities.js';
import type { GrantedFunctions } from './capabilities.js';

/**
 * A configured plug-in whose file has not been read yet, and the host functions that it may import.
 */
export interface PluginSource extends Omit<PluginConfig, 'path'>, GrantedFunctions {
  readonly path: string;
  /** True for a module that ships with Antiphon. */
  readonly bundled: boolean;
}

export type ReadResult =
  | { readonly status: 'read'; readonly bytes: Uint8Array; readonly digest: string }
  | { readonly status: 'missing' | 'rejected'; readonly reason: string };

const HTTP_GET = 'http-get';
/** Names of the plug-ins that ship with Antiphon. */
export const BUNDLED_TOOLS = ['echo', 'calculator', HTTP_GET];
export const DEFAULT_TIMEOUT_MS = 5_000;
export const DEFAULT_MEMORY_MB = 16;
const HTTP_TIMEOUT_MS = 12_000;

const bundledPath = (directory: string, name: string): string => `${directory}/${name}.wasm`;

/**
 * `http-get` is registered even without a granted host. It then refuses each page with a reason.
 */
const createBundled = (directory: string, name: string): PluginSource => ({
  name,
  workspace: '*',
  path: bundledPath(directory, name),
  kind: 'tool',
  capabilities: [],
  timeoutMs: name === HTTP_GET ? HTTP_TIMEOUT_MS : DEFAULT_TIMEOUT_MS,
  memoryMb: DEFAULT_MEMORY_MB,
  retry: { maxAttempts: null, maxBackoffMs: null },
  bundled: true,
  ...grantedFunctions([]),
  http: name === HTTP_GET,
});

const createConfigured = (directory: string, plugin: PluginConfig): PluginSource => ({
  ...plugin,
  path: plugin.path ?? bundledPath(directory, plugin.name),
  bundled: plugin.path === null,
  ...grantedFunctions(plugin.capabilities),
  ...(plugin.path === null && plugin.name === HTTP_GET ? { http: true } : {}),
});

/** Lists bundled and configured plug-ins. A configured one replaces the bundled one of its name. */
export const listPluginSources = (directory: string, configured: readonly PluginConfig[]): PluginSource[] => {
  const taken = new Set(configured.map(({ name }) => name));
  return [
    ...BUNDLED_TOOLS.filter((name) => !taken.has(name)).map((name) => createBundled(directory, name)),
    ...configured.map((plugin) => createConfigured(directory, plugin)),
  ];
};

const codeOf = (error: unknown): string => String((error as { code?: unknown }).code ?? 'unknown error');

/** Reads a module's file: a regular file of at most the validator's limit. */
export const readPluginFile = async (path: string): Promise<ReadResult> => {
  try {
    // Without O_NONBLOCK, opening a pipe without a writer would block forever.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = await file.stat();
    if (!stat.isFile()) return { status: 'rejected', reason: 'not a regular file' };
    if (stat.size > MAX_MODULE_BYTES)
      return {
        status: 'rejected',
        reason: `the file has ${stat.size} bytes, the limit is ${MAX_MODULE_BYTES}`,
      };
    const bytes = await file.readFile();
    return { status: 'read', bytes, digest: createHash('sha256').update(bytes).digest('hex') };
  } catch (error) {
    const code = codeOf(error);
    return code === 'ENOENT' || code === 'ENOTDIR'
      ? { status: 'missing', reason: 'the file does not exist' }
      : { status: 'rejected', reason: `the file cannot be read (${code})` };
  }
};
