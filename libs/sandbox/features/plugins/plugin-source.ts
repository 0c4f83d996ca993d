import { createHash } from 'node:crypto';
import { constants, open } from 'node:fs/promises';
import type { PluginConfig } from '@antiphon/config';
import { MAX_MODULE_BYTES } from '@antiphon/sandbox-domain';

/** A plug-in before anyone has looked at its file. */
export interface PluginSource extends PluginConfig {
  /** Ships with Antiphon; one of the configuration takes its name away. */
  readonly bundled: boolean;
}

export type ReadResult =
  | { readonly status: 'read'; readonly bytes: Uint8Array; readonly digest: string }
  | { readonly status: 'missing' | 'rejected'; readonly reason: string };

const BUNDLED_TOOLS = ['echo', 'calculator'];
export const DEFAULT_TIMEOUT_MS = 5_000;
export const DEFAULT_MEMORY_MB = 16;

const bundled = (directory: string, name: string): PluginSource => ({
  name,
  path: `${directory}/${name}.wasm`,
  kind: 'tool',
  capabilities: [],
  timeoutMs: DEFAULT_TIMEOUT_MS,
  memoryMb: DEFAULT_MEMORY_MB,
  bundled: true,
});

/** The bundled plug-ins and those of the configuration, which may replace a bundled one by taking its name. */
export const pluginSources = (directory: string, configured: readonly PluginConfig[]): PluginSource[] => {
  const taken = new Set(configured.map(({ name }) => name));
  return [
    ...BUNDLED_TOOLS.filter((name) => !taken.has(name)).map((name) => bundled(directory, name)),
    ...configured.map((plugin) => ({ ...plugin, bundled: false })),
  ];
};

const codeOf = (error: unknown): string => String((error as { code?: unknown }).code ?? 'unknown error');

/** Reads a module's file, never more than the gate would take, and never from a pipe or a device. */
export const readPluginFile = async (path: string): Promise<ReadResult> => {
  try {
    // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
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
