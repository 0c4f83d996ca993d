import { MAX_RESULT_BYTES } from '@antiphon/contracts/sandbox';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import { textOf } from '@antiphon/contracts/causes';
import { toStorable } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import { withSpan } from '@antiphon/observability';
import { renderMcpResult, toolFailed } from '@antiphon/sandbox-domain';
import type { McpResult, ToolOutcome } from '@antiphon/sandbox-domain';
import type { HostedCall, HostedEnd, HostedTool, ToolSource } from '../calls/tool-source.js';
import type { McpConnection, McpLimits } from './mcp-connection.js';
import type { KnownServer, McpServers } from './mcp-servers.js';
import { classifyError, explain } from './mcp-session.js';
import type { McpSession } from './mcp-session.js';
import { callableTools, describeTool, findPending, listedTools } from './mcp-tools.js';
import type { CallableTool, FeatureCall } from './mcp-tools.js';

const NAME = /^mcp__([a-z0-9-]{1,24})__/;

const outcome = (of: ToolOutcome): HostedEnd => ({ end: 'outcome', outcome: of });
const unavailable = (message: string): HostedEnd => ({ end: 'unavailable', message });

const parseInput = (input: Buffer): JsonObject => {
  const value: unknown = JSON.parse(input.toString('utf8'));
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
};

const textField = (input: JsonObject, name: string): string | undefined => {
  const value = input[name];
  return typeof value === 'string' ? value : undefined;
};

const asText = (value: unknown): McpResult => ({
  content: [{ type: 'text', text: JSON.stringify(value) }],
  isError: false,
});

const stringsOf = (value: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(typeof value === 'object' && value !== null ? value : {}).map(([key, item]) => [
      key,
      typeof item === 'string' ? item : JSON.stringify(item),
    ]),
  );

const callFeature = async (
  feature: FeatureCall,
  connection: McpConnection,
  input: JsonObject,
  limits: McpLimits,
): Promise<McpResult> => {
  switch (feature) {
    case 'list_resources':
      return asText(await connection.listResources(textField(input, 'cursor'), limits));
    case 'list_prompts':
      return asText(await connection.listPrompts(textField(input, 'cursor'), limits));
    case 'read_resource':
      return connection.readResource(textField(input, 'uri') ?? '', limits);
    case 'get_prompt':
      return connection.getPrompt(textField(input, 'name') ?? '', stringsOf(input['arguments']), limits);
  }
};

/** Calls of one tool of an MCP server. */
class McpTool implements HostedTool {
  readonly description: ToolDescription;

  constructor(
    private readonly servers: McpServers,
    private readonly workspace: string,
    private readonly server: KnownServer,
    private readonly tool: CallableTool,
  ) {
    this.description = describeTool(server.state.name, tool, server.policy);
  }

  /** Nothing is sent to the tool before `begin`; the list of tools is read before that. */
  run(call: HostedCall): Promise<HostedEnd> {
    const { name } = this.server.state;
    const attributes = { 'gen_ai.tool.name': this.tool.name, 'antiphon.mcp.server': name };
    return withSpan({ name: 'call MCP tool', attributes }, async (span) => {
      const end = await this.#run(call);
      if (end.end !== 'outcome' || end.outcome.outcome === 'failed') span.fail(end.end);
      return end;
    });
  }

  async #run(call: HostedCall): Promise<HostedEnd> {
    const { name } = this.server.state;
    const session = this.servers.session(this.workspace, this.server);
    const obstacle = session.findObstacle();
    // Not unavailable, which a caller would repeat for half a minute.
    if (obstacle !== null) return outcome(toolFailed('TOOL.SERVER_FAILED', obstacle));
    const deadline = AbortSignal.timeout(call.timeoutMs);
    const ended = AbortSignal.any([call.signal, deadline]);
    const began = performance.now();
    try {
      await raceWith(ended, session.refresh());
      if (!(await this.#isUnchanged())) return outcome(this.#changed());
    } catch (error) {
      session.releaseTrial();
      if (call.signal.aborted) return outcome(toolFailed('TOOL.CANCELLED', { kind: 'tool_call_cancelled' }));
      return outcome(toolFailed('TOOL.SERVER_FAILED', explain(name, error)));
    }
    const given = call.findObstacle();
    if (given !== null) return unavailable(given);
    try {
      await call.begin(ended);
    } catch {
      session.releaseTrial();
      return outcome(this.#ended(call));
    }
    const timeoutMs = Math.max(1, Math.floor(call.timeoutMs - (performance.now() - began)));
    return outcome(await this.#call(session, call, timeoutMs));
  }

  async #call(session: McpSession, call: HostedCall, timeoutMs: number): Promise<ToolOutcome> {
    const { name } = this.server.state;
    const { target } = this.tool;
    const input = parseInput(call.input);
    const limits = { timeoutMs, signal: call.signal };
    try {
      const result = await session.use((connection, definitionOf) =>
        'tool' in target
          ? connection.callTool({ name: target.tool, input, definition: definitionOf(target.tool) }, limits)
          : callFeature(target.feature, connection, input, limits),
      );
      return renderMcpResult(result, MAX_RESULT_BYTES);
    } catch (error) {
      const { kind, cause } = classifyError(name, error, call.signal);
      // An answer with an error is a result: the server has ended the call.
      if (kind === 'answered')
        return { outcome: 'completed', content: toStorable(textOf(cause)), isError: true };
      if (kind === 'cancelled') return toolFailed('TOOL.CANCELLED', cause);
      if (kind === 'timeout')
        return toolFailed('TOOL.TIMEOUT', { kind: 'tool_timeout', timeoutMs: call.timeoutMs });
      return toolFailed('TOOL.SERVER_FAILED', cause);
    }
  }

  /** Returns false if the tool is not the one any more that was found. */
  async #isUnchanged(): Promise<boolean> {
    const { state } = (await this.servers.find(this.workspace, this.server.state.name)) ?? {};
    const now = state && callableTools(state).find(({ name }) => name === this.tool.name);
    return now?.digest === this.tool.digest;
  }

  #changed(): ToolOutcome {
    return changedOutcome(this.server.state.name, this.tool.name);
  }

  #ended({ signal, timeoutMs }: HostedCall): ToolOutcome {
    return signal.aborted
      ? toolFailed('TOOL.CANCELLED', { kind: 'tool_call_cancelled' })
      : toolFailed('TOOL.TIMEOUT', { kind: 'tool_timeout', timeoutMs });
  }
}

const changedOutcome = (server: string, tool: string): ToolOutcome =>
  toolFailed('TOOL.CHANGED', { kind: 'mcp_tool_unapproved', server, tool });

/** Rejects when the signal aborts. The work continues for other calls. */
const raceWith = async (signal: AbortSignal, work: Promise<void>): Promise<void> => {
  signal.throwIfAborted();
  let abort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    abort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
  });
  try {
    await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
    work.catch(() => undefined);
  }
};

/** Tools of MCP servers. One that changed after its pin is listed as it was pinned, and not called. */
export class McpTools implements ToolSource {
  readonly kind = 'mcp';

  constructor(private readonly servers: McpServers) {}

  async list(workspace: string): Promise<readonly ToolDescription[]> {
    const before = await this.servers.list(workspace);
    if (before.length === 0) return [];
    await this.servers.pinNew(workspace, before);
    const servers = await this.servers.list(workspace);
    return servers.flatMap(({ state, policy }) =>
      listedTools(state).map((tool) => describeTool(state.name, tool, policy)),
    );
  }

  async find(workspace: string, name: string): Promise<HostedTool | undefined> {
    const server = await this.#serverOf(workspace, name);
    if (!server) return undefined;
    const tool = callableTools(server.state).find((one) => one.name === name);
    if (tool) return new McpTool(this.servers, workspace, server, tool);
    const { pinned, pending } = server.state;
    const isUnlisted = pinned.size + pending.size === 0;
    return isUnlisted || findPending(server.state, name)
      ? this.#findAgain(workspace, server, name)
      : undefined;
  }

  async explainAbsence(workspace: string, name: string): Promise<ToolOutcome | undefined> {
    const server = await this.#serverOf(workspace, name);
    const pending = server && findPending(server.state, name);
    return pending ? changedOutcome(server.state.name, name) : undefined;
  }

  /** Looks whether a server has taken the change of a tool back, or was not listed in time before. */
  async #findAgain(workspace: string, server: KnownServer, name: string): Promise<HostedTool | undefined> {
    await this.servers
      .session(workspace, server)
      .refresh()
      .catch(() => undefined);
    const now = await this.servers.find(workspace, server.state.name);
    const tool = now && callableTools(now.state).find((one) => one.name === name);
    return tool && new McpTool(this.servers, workspace, now, tool);
  }

  async #serverOf(workspace: string, name: string): Promise<KnownServer | undefined> {
    const [, server] = NAME.exec(name) ?? [];
    return server === undefined ? undefined : this.servers.find(workspace, server);
  }
}
