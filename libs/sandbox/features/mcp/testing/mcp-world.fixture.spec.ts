import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import type { McpServerConfig } from '@antiphon/config';
import { RESULT_PART_BYTES } from '@antiphon/contracts/sandbox';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import type { RequestClient } from '@antiphon/messaging';
import { createLogger, systemClock, uuidIds } from '@antiphon/observability';
import { createTestDatabase } from '@antiphon/testing';
import { CallRegistry } from '../../calls/call-registry.js';
import type { CallToolReply, CallToolRequest } from '../../calls/call-registry.js';
import { CallTool } from '../../calls/call-tool.handler.js';
import { HeldResults, heldKeyOf } from '../../calls/held-results.js';
import type { LogEntry } from '../../testing/sandbox.fixture.spec.js';
import { ChangeMcpServers } from '../mcp-servers.handler.js';
import { McpRegistry } from '../mcp-registry.js';
import { McpServers } from '../mcp-servers.js';
import { McpTools } from '../mcp-source.js';

/** Program of the operator's file that a spec runs. */
export const program = (name: string, args: readonly string[], more: Partial<McpServerConfig> = {}) =>
  ({
    ...{ name, workspace: 'default', command: process.execPath, args, env: [] },
    ...{ timeoutMs: 10_000, trustHints: false, ...more },
  }) as McpServerConfig;

/** MCP servers with a real log, as one process of the sandbox service has them. */
export interface McpWorld {
  readonly servers: McpServers;
  readonly tools: McpTools;
  readonly change: ChangeMcpServers;
  readonly log: LogEntry[];
  /** Permissions that calls asked for. */
  readonly asked: { count: number; isGranted: boolean };
  readonly call: (name: string, input?: unknown, more?: Partial<CallToolRequest>) => Promise<CallToolReply>;
  readonly cancel: (callId: string) => void;
  /** Returns the whole of a large result, as its caller reads it. */
  readonly readHeld: (workspace: string, callId: string) => Buffer;
  readonly events: (workspace?: string) => Promise<readonly { type: string; data: unknown }[]>;
}

export interface McpWorlds {
  readonly open: (
    servers: readonly McpServerConfig[],
    options?: { privateHosts?: readonly string[]; environment?: Record<string, string> },
  ) => McpWorld;
  readonly close: () => Promise<void>;
}

export const startMcpWorlds = async (): Promise<McpWorlds> => {
  const database = await createTestDatabase();
  const pool = createPool({ url: database.urlFor('sandbox'), applicationName: 'spec' });
  const store = createPostgresEventStore(pool);
  const opened: McpServers[] = [];
  const open: McpWorlds['open'] = (servers, { privateHosts = [], environment = {} } = {}) => {
    const log: LogEntry[] = [];
    const sink = { write: (line: string) => void log.push(JSON.parse(line) as LogEntry) };
    const logger = createLogger({ service: 'sandbox', sink });
    const registry = new McpRegistry({ store, ids: uuidIds, clock: systemClock });
    const config = { mcp: { privateHosts, servers } };
    const known = new McpServers({ config, environment, registry, logger, home: tmpdir() });
    opened.push(known);
    const tools = new McpTools(known);
    const asked = { count: 0, isGranted: true };
    const request = async () => {
      asked.count += 1;
      return { granted: asked.isGranted };
    };
    const calls = new CallRegistry();
    const held = new HeldResults(() => performance.now());
    const deps = { sources: [tools], agents: [], calls, logger, held };
    const callTool = new CallTool(deps, { request } as unknown as RequestClient, { id: 'sandbox-1' });
    const session = { workspace: 'default', sessionId: randomUUID(), epoch: 1 };
    return {
      ...{ servers: known, tools, log, asked, change: new ChangeMcpServers(known, registry, logger) },
      call: (name, input = {}, { callId = randomUUID(), ...more } = {}) => {
        const ids = { idempotencyKey: callId, callId, attemptId: randomUUID() };
        return callTool.handle({ ...session, ...ids, name, input: input as never, ...more });
      },
      readHeld: (workspace, callId) => {
        const parts: Buffer[] = [];
        const key = heldKeyOf({ workspace, callId });
        for (let at = 0; ; at += parts.at(-1)?.length ?? 0) {
          const part = held.read(key, at, RESULT_PART_BYTES);
          if (!part?.length) return Buffer.concat(parts);
          parts.push(part);
        }
      },
      cancel: (callId) => calls.cancel({ ...session, callId }),
      events: async (workspace = 'default') =>
        (await store.readStream(workspace, 'plugin-mcp')).map(({ type, data }) => ({ type, data })),
    };
  };
  return {
    open,
    close: async () => {
      await Promise.all(opened.map((servers) => servers.close()));
      await store.close();
      await pool.end();
      await database.drop();
    },
  };
};
