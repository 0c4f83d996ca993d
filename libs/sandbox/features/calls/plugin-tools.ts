import { isVisibleIn } from '@antiphon/config';
import { textCause } from '@antiphon/contracts/causes';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import { toToolOutcome, toolFailed } from '@antiphon/sandbox-domain';
import type { ToolOutcome } from '@antiphon/sandbox-domain';
import { MAX_TOOL_OUTPUT_BYTES } from '@antiphon/contracts/sandbox';
import { withSpan } from '@antiphon/observability';
import type { Logger, SpanStart } from '@antiphon/observability';
import type { ReadSecrets, SecretGrant } from '../http/request-secrets.js';
import type { VettedClient } from '../http/vetted-client.js';
import type { AddedPlugins } from '../plugins/added-plugins.js';
import { grantedHosts, grantedNames } from '../plugins/capabilities.js';
import { sortedGrants } from '../plugins/load-plugins.js';
import type { LoadedPlugin, PluginEntry } from '../plugins/load-plugins.js';
import { bindToCallerContext } from '../plugins/plugin-log.js';
import type { CellPool, PoolEnd } from '../pool/cell-pool.js';
import type { PluginStore } from '../store/plugin-store.js';
import type { HostedCall, HostedEnd, HostedTool, ToolSource } from './tool-source.js';

const ENTRY = 'handle_tool_call';
const NONE: ReadonlySet<string> = new Set();

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

export interface PluginToolsDeps {
  readonly entries: readonly PluginEntry[];
  readonly pool: Pick<CellPool, 'run'>;
  readonly http: VettedClient;
  /** Plug-ins that workspaces added; null where there is no database. */
  readonly added: Pick<AddedPlugins, 'recent' | 'list' | 'find'> | null;
  /** Stores of plug-ins; null where there is no database. */
  readonly store: PluginStore | null;
  /** Secrets of workspaces; null where no service has them. */
  readonly readSecrets: ReadSecrets | null;
  readonly logger: Logger;
}

/** WebAssembly plug-ins as tools: those of the configuration, and those that a workspace added. */
export class PluginTools implements ToolSource {
  readonly kind = 'plugin';
  private readonly tools: readonly { readonly plugin: LoadedPlugin; readonly description: ToolDescription }[];

  constructor(private readonly deps: PluginToolsDeps) {
    this.tools = deps.entries.flatMap(({ plugin }) =>
      plugin?.source.kind === 'tool' ? [{ plugin, description: describeTool(plugin) }] : [],
    );
  }

  async list(workspace: string): Promise<readonly ToolDescription[]> {
    const added = await this.listAdded(workspace);
    const denied = await this.readDenied(workspace);
    const tools = [
      ...this.visibleTools(workspace).map(({ description }) => description),
      ...added.map(describeTool),
    ];
    return tools.filter(({ name }) => !denied.has(name));
  }

  async find(workspace: string, name: string): Promise<HostedTool | undefined> {
    const tool = this.visibleTools(workspace).find(({ plugin }) => plugin.source.name === name);
    const plugin = tool?.plugin ?? (await this.deps.added?.find(workspace, name));
    if (!plugin || (await this.readDenied(workspace)).has(name)) return undefined;
    return {
      description: tool?.description ?? describeTool(plugin),
      run: async (call: HostedCall) => toHostedEnd(await this.runInPool(plugin, call)),
    };
  }

  async explainAbsence(workspace: string, name: string): Promise<ToolOutcome | undefined> {
    const entry = this.deps.entries.find(({ view }) => view.name === name);
    const isForeign = entry?.source !== undefined && !isVisibleIn(entry.source, workspace);
    const refused = isForeign ? undefined : entry?.view;
    if ((await this.readDenied(workspace)).has(name))
      return toolFailed('TOOL.DENIED', textCause('the workspace denies this plug-in'));
    return refused?.reason
      ? toolFailed('TOOL.UNKNOWN', {
          ...{ kind: 'tool_refused', name, status: refused.status, reason: refused.reason },
        })
      : undefined;
  }

  private visibleTools(workspace: string) {
    return this.tools.filter(({ plugin }) => isVisibleIn(plugin.source, workspace));
  }

  /** Plug-ins of the configuration are listed also while the log cannot be read. */
  private async listAdded(workspace: string): Promise<LoadedPlugin[]> {
    try {
      const added = (await this.deps.added?.list(workspace)) ?? [];
      return added.flatMap((one) => ('image' in one ? [one] : []));
    } catch (error) {
      this.deps.logger.warn({ workspace, err: error }, 'added plugins not listed');
      return [];
    }
  }

  /** Throws while the log cannot be read: a denied plug-in must not run then. */
  private async readDenied(workspace: string): Promise<ReadonlySet<string>> {
    return (await this.deps.added?.recent(workspace))?.denied ?? NONE;
  }

  private runInPool(plugin: LoadedPlugin, call: HostedCall): Promise<PoolEnd> {
    const { image, source, listener } = plugin;
    const { request, input, timeoutMs, signal, findObstacle, begin } = call;
    const { workspace, sessionId, name, callId, idempotencyKey } = request;
    const hosts = grantedHosts(source.capabilities);
    const secrets = this.grantSecrets(plugin, workspace);
    const grant = { plugin: name, hosts, secrets, timeoutMs, idempotencyKey, beforeRequest: begin };
    const job = {
      ...{ plugin: name, session: `${workspace}/${sessionId}`, image, entry: ENTRY, input },
      settings: { call_id: callId, idempotency_key: idempotencyKey },
      ...{ timeoutMs, listener: bindToCallerContext(listener), signal, findObstacle },
      http: source.http ? this.deps.http.serveCall(grant) : undefined,
      store: source.store ? this.serveStore(plugin, call) : undefined,
      abilities: { log: true, clock: source.clock, random: source.random },
    };
    return withSpan(cellSpan(name), async (span) => {
      const end = await this.deps.pool.run(job);
      if (end.end !== 'returned') span.fail(end.end);
      return end;
    });
  }

  private grantSecrets({ source }: LoadedPlugin, workspace: string): SecretGrant | undefined {
    const names = grantedNames(source.capabilities, 'secret');
    const { readSecrets } = this.deps;
    if (names.size === 0) return undefined;
    return { names, read: async (wanted) => (await readSecrets?.(workspace, wanted)) ?? {} };
  }

  /** A change of a store is an effect, unless the tool may be called again anyway. */
  private serveStore({ source, description }: LoadedPlugin, { request, begin }: HostedCall) {
    return this.deps.store?.serveCall({
      ...{ workspace: request.workspace, plugin: source.name },
      stores: grantedNames(source.capabilities, 'store'),
      beforeChange: description.idempotent ? () => Promise.resolve() : begin,
    });
  }
}
