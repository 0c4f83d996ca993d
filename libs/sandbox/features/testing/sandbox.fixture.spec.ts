import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { PluginConfig } from '@antiphon/config';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import type { RequestClient } from '@antiphon/messaging';
import { createLogger } from '@antiphon/observability';
import { createSandbox } from '../calls/sandbox.js';
import type { CallToolReply, CallToolRequest } from '../calls/call-registry.js';
import { CallTool } from '../calls/call-tool.handler.js';
import type { Sandbox, SandboxOptions } from '../calls/sandbox.js';
import { listHostedTools } from '../calls/tool-source.js';
import { MODULES } from './modules.fixture.spec.js';

export type LogEntry = Readonly<Record<string, unknown>>;

export interface TestSandbox {
  readonly sandbox: Sandbox;
  readonly log: LogEntry[];
  readonly call: (name: string, input?: unknown, more?: Partial<CallToolRequest>) => Promise<CallToolReply>;
  readonly cancel: (callId: string) => void;
  /** Permission of the caller for the first effect of a call, and how often the sandbox asked. */
  readonly permit: { asked: number; isGranted: boolean };
  /** Tools of plug-ins, as a workspace may call them. */
  readonly tools: readonly ToolDescription[];
  readonly view: (name: string) => Sandbox['plugins'][number] | undefined;
  readonly close: () => Promise<void>;
}

const PLUGINS = join(import.meta.dirname, '../../../../plugins');

/** Builds the bundled plug-ins like `npm run build:plugins` and returns their folder. */
export const bundledPlugins = async (): Promise<string> => {
  await promisify(execFile)(process.execPath, [join(PLUGINS, 'build.mjs')]);
  return join(PLUGINS, 'dist');
};

export const folderOf = async (names: readonly string[]): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'antiphon-plugins-'));
  await Promise.all(names.map((name) => writeFile(join(folder, `${name}.wasm`), MODULES[name] ?? '')));
  return folder;
};

export const pluginAt = (path: string, more: Partial<PluginConfig> & { name: string }): PluginConfig => ({
  path,
  workspace: '*',
  kind: 'tool',
  capabilities: [],
  timeoutMs: 5_000,
  memoryMb: 16,
  retry: { maxAttempts: null, maxBackoffMs: null },
  ...more,
});

/** Starts a sandbox with real cells and modules of the fixture. */
export const startSandbox = async (
  names: readonly string[],
  plugin: Partial<PluginConfig> = {},
  options: Partial<SandboxOptions> = {},
): Promise<TestSandbox> => {
  const folder = await folderOf(names);
  const log: LogEntry[] = [];
  const sink = { write: (line: string) => void log.push(JSON.parse(line) as LogEntry) };
  const sandbox = await createSandbox({
    bundledDirectory: folder,
    plugins: names.map((name) => pluginAt(join(folder, `${name}.wasm`), { ...plugin, name })),
    logger: createLogger({ service: 'sandbox', sink }),
    cells: 2,
    ...options,
  });
  const permit = { asked: 0, isGranted: true };
  const ask = async () => {
    permit.asked += 1;
    return { granted: permit.isGranted };
  };
  const callTool = new CallTool(sandbox, { request: ask } as unknown as RequestClient, { id: 'sandbox-1' });
  const session = { workspace: 'default', sessionId: randomUUID(), epoch: 1 };
  return {
    sandbox,
    tools: await listHostedTools(sandbox.sources, 'default'),
    log,
    permit,
    call: (name, input = {}, { callId = randomUUID(), ...more } = {}) => {
      const key = { idempotencyKey: callId, callId };
      return callTool.handle({ ...session, ...key, name, input: input as never, ...more });
    },
    cancel: (callId) => sandbox.calls.cancel({ ...session, callId }),
    view: (name) => sandbox.plugins.find((candidate) => candidate.name === name),
    close: async () => {
      await sandbox.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
};

const isCell = (pid: number): boolean =>
  readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--wasm-max-table-size');

/** Returns the process ids of this process's cells; needs /proc. */
export const cells = (): number[] =>
  readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')
    .split(' ')
    .filter(Boolean)
    .map(Number)
    .filter(isCell);

/** Returns the resident memory of a process in MiB, now or at its peak. */
export const residentMb = (pid: number, moment: 'peak' | 'now' = 'now'): number => {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const field = moment === 'peak' ? /VmHWM:\s+(\d+)/ : /VmRSS:\s+(\d+)/;
  return Number(field.exec(status)?.[1] ?? 0) / 1024;
};
