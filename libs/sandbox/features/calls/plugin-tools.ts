import { isVisibleIn } from '@antiphon/config';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import { toToolOutcome, toolFailed } from '@antiphon/sandbox-domain';
import type { ToolOutcome } from '@antiphon/sandbox-domain';
import { MAX_TOOL_OUTPUT_BYTES } from '@antiphon/contracts/sandbox';
import { withSpan } from '@antiphon/observability';
import type { SpanStart } from '@antiphon/observability';
import type { VettedClient } from '../http/vetted-client.js';
import { grantedHosts } from '../plugins/capabilities.js';
import { sortedGrants } from '../plugins/load-plugins.js';
import type { LoadedPlugin, PluginEntry } from '../plugins/load-plugins.js';
import { bindToCallerContext } from '../plugins/plugin-log.js';
import type { CellPool, PoolEnd } from '../pool/cell-pool.js';
import type { HostedCall, HostedEnd, HostedTool, ToolSource } from './tool-source.js';

const ENTRY = 'handle_tool_call';

/** Returns the span of a call; `name` is the name of a registered plug-in. */
const cellSpan = (name: string): SpanStart => ({
  name: 'run in cell',
  attributes: { 'gen_ai.tool.name': name },
});

const describeTool = (plugin: LoadedPlugin): ToolDescription => {
  const { source, image, policy } = plugin;
  const { description, inputSchema, idempotent } = plugin.description;
  return {
    ...{ name: source.name, description, inputSchema, idempotent },
    ...(policy.retry ? { retry: policy.retry } : {}),
    timeoutMs: policy.timeoutMs,
    memoryMb: source.memoryMb,
    moduleDigest: image.digest,
    grants: sortedGrants(plugin),
  } as ToolDescription;
};

const toHostedEnd = (end: PoolEnd): HostedEnd => {
  if (end.end === 'stopped' || end.end === 'unavailable') return end;
  return { end: 'outcome', outcome: toToolOutcome(end, MAX_TOOL_OUTPUT_BYTES) };
};

/** WebAssembly plug-ins of this process as tools. */
export class PluginTools implements ToolSource {
  readonly kind = 'plugin';
  private readonly tools: readonly { readonly plugin: LoadedPlugin; readonly description: ToolDescription }[];

  constructor(
    private readonly entries: readonly PluginEntry[],
    private readonly pool: Pick<CellPool, 'run'>,
    private readonly http: VettedClient,
  ) {
    this.tools = entries.flatMap(({ plugin }) =>
      plugin?.source.kind === 'tool' ? [{ plugin, description: describeTool(plugin) }] : [],
    );
  }

  list(workspace: string): Promise<readonly ToolDescription[]> {
    return Promise.resolve(
      this.tools
        .filter(({ plugin }) => isVisibleIn(plugin.source, workspace))
        .map(({ description }) => description),
    );
  }

  find(workspace: string, name: string): Promise<HostedTool | undefined> {
    const tool = this.tools.find(
      ({ plugin }) => plugin.source.name === name && isVisibleIn(plugin.source, workspace),
    );
    const hosted = tool && {
      description: tool.description,
      run: async (call: HostedCall) => toHostedEnd(await this.runInPool(tool.plugin, call)),
    };
    return Promise.resolve(hosted);
  }

  explainAbsence(workspace: string, name: string): Promise<ToolOutcome | undefined> {
    const entry = this.entries.find(({ view }) => view.name === name);
    const isForeign = entry?.source !== undefined && !isVisibleIn(entry.source, workspace);
    const refused = isForeign ? undefined : entry?.view;
    return Promise.resolve(
      refused?.reason
        ? toolFailed('TOOL.UNKNOWN', {
            ...{ kind: 'tool_refused', name, status: refused.status, reason: refused.reason },
          })
        : undefined,
    );
  }

  private runInPool({ image, source, listener }: LoadedPlugin, call: HostedCall): Promise<PoolEnd> {
    const { request, input, timeoutMs, signal, findObstacle, begin } = call;
    const { workspace, sessionId, name, callId, idempotencyKey } = request;
    const hosts = grantedHosts(source.capabilities);
    const grant = { plugin: name, hosts, timeoutMs, idempotencyKey, beforeRequest: begin };
    const job = {
      ...{ plugin: name, session: `${workspace}/${sessionId}`, image, entry: ENTRY, input },
      settings: { call_id: callId, idempotency_key: idempotencyKey },
      ...{ timeoutMs, listener: bindToCallerContext(listener), signal, findObstacle },
      http: source.http ? this.http.serveCall(grant) : undefined,
      abilities: { log: true, clock: source.clock, random: source.random },
    };
    return withSpan(cellSpan(name), async (span) => {
      const end = await this.pool.run(job);
      if (end.end !== 'returned') span.fail(end.end);
      return end;
    });
  }
}
