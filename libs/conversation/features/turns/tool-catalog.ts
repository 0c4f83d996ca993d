import { expandTools, ruleOfTool } from '@antiphon/config';
import type { AgentConfig, ToolLimit } from '@antiphon/config';
import { DEFAULT_TOOL_RETRY, listTools, narrowRetry } from '@antiphon/contracts/sandbox';
import type { ToolDescription, ToolRetry } from '@antiphon/contracts/sandbox';
import type { RequestClient } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { NATIVE_DESCRIPTIONS, isNativeTool } from '../tools/tool-schemas.js';

/** Age after which the list of tools is refreshed in the background, ms. */
const FRESH_MS = 5_000;

const nativeTools = (names: readonly string[]): ToolDescription[] =>
  names.flatMap((name) => NATIVE_DESCRIPTIONS.get(name) ?? []);

interface Entry {
  readonly byName: ReadonlyMap<string, ToolDescription>;
  readonly fetchedAt: number;
}

/**
 * Cache of the sandbox's tools, by workspace. Tools change only with plug-ins, so a turn waits for
 * the list only when the cache has none.
 */
export class ToolCatalog {
  private readonly entries = new Map<string, Entry>();
  private readonly fetching = new Map<string, Promise<Entry>>();
  private readonly missing = new Set<string>();

  constructor(
    private readonly requests: RequestClient,
    private readonly logger: Logger,
    private readonly monotonicMs: () => number,
  ) {}

  /**
   * Returns the tools that an agent may call, in the order of its configuration. Those of a name
   * with `*` are in the order of their names.
   */
  async toolsOf(workspace: string, names: readonly string[]): Promise<readonly ToolDescription[]> {
    if (names.every(isNativeTool)) return nativeTools(names);
    const { byName } = await this.currentEntry(workspace);
    return expandTools(names, byName.keys()).flatMap((name) => {
      const tool = NATIVE_DESCRIPTIONS.get(name) ?? byName.get(name);
      if (!tool) this.warnOnce(name);
      return tool ? [tool] : [];
    });
  }

  /**
   * Returns the tools from the sandbox, not from the cache: an approval is bound to what would run
   * now.
   */
  async freshToolsOf(workspace: string, names: readonly string[]): Promise<readonly ToolDescription[]> {
    if (names.every(isNativeTool)) return nativeTools(names);
    const { byName } = await this.fetch(workspace);
    const all = expandTools(names, byName.keys());
    return all.flatMap((name) => NATIVE_DESCRIPTIONS.get(name) ?? byName.get(name) ?? []);
  }

  /** Returns all tools, from the sandbox; the native ones alone if it does not respond. */
  async allTools(
    workspace: string,
  ): Promise<{ readonly tools: readonly ToolDescription[]; readonly hasPlugins: boolean }> {
    const native = [...NATIVE_DESCRIPTIONS.values()];
    try {
      const { byName } = await this.fetch(workspace);
      const others = [...byName.values()].filter(({ name }) => !isNativeTool(name));
      return { tools: [...native, ...others], hasPlugins: true };
    } catch (error) {
      this.logger.warn({ err: error }, 'tool list refresh failed');
      return { tools: native, hasPlugins: false };
    }
  }

  /** Returns the cached description of a tool. */
  known(workspace: string, name: string): ToolDescription | undefined {
    return NATIVE_DESCRIPTIONS.get(name) ?? this.entries.get(workspace)?.byName.get(name);
  }

  private async currentEntry(workspace: string): Promise<Entry> {
    const entry = this.entries.get(workspace);
    if (!entry) return this.refresh(workspace);
    if (this.monotonicMs() - entry.fetchedAt > FRESH_MS)
      this.refresh(workspace).catch((error: unknown) =>
        this.logger.warn({ err: error }, 'tool list refresh failed'),
      );
    return entry;
  }

  private refresh(workspace: string): Promise<Entry> {
    const running = this.fetching.get(workspace);
    if (running) return running;
    const started = this.fetch(workspace).finally(() => this.fetching.delete(workspace));
    this.fetching.set(workspace, started);
    return started;
  }

  private async fetch(workspace: string): Promise<Entry> {
    const { tools } = await this.requests.request(listTools, { workspace });
    const byName = new Map(tools.map((tool) => [tool.name, tool]));
    const entry = { byName, fetchedAt: this.monotonicMs() };
    this.entries.set(workspace, entry);
    return entry;
  }

  private warnOnce(name: string): void {
    if (this.missing.has(name)) return;
    this.missing.add(name);
    this.logger.warn({ tool: name }, 'agent tool not in sandbox');
  }
}

type Described = Pick<ToolDescription, 'idempotent' | 'retry' | 'timeoutMs'>;

/** Retry policy and timeout that the request of a call records. */
export interface CallPolicy {
  readonly retry?: ToolRetry;
  /** Set only where the agent's limit is below the tool's own timeout. */
  readonly timeoutMs?: number;
}

const limitFor = (
  agent: Pick<AgentConfig, 'toolLimits'> | null,
  tool: string,
): Partial<Omit<ToolLimit, 'tool'>> => {
  const limits = agent?.toolLimits ?? [];
  return ruleOfTool(limits, tool) ?? {};
};

/**
 * Narrows a tool's retry policy to the agent's limits. An idempotent tool without a policy gets the
 * default one.
 */
const retryWithin = (
  { idempotent, retry }: Described,
  { maxAttempts = null, maxBackoffMs = null }: Partial<ToolLimit>,
): ToolRetry | undefined => {
  if (maxAttempts === null && maxBackoffMs === null) return retry;
  const base = retry ?? (idempotent ? DEFAULT_TOOL_RETRY : undefined);
  return base && narrowRetry(base, { maxAttempts, maxBackoffMs });
};

/**
 * Returns the policy of an agent's call: the tool's own, within the limits of the agent's
 * configuration.
 */
export const callPolicy = (
  agent: Pick<AgentConfig, 'toolLimits'> | null,
  tool: string,
  described: Described,
): CallPolicy => {
  const limit = limitFor(agent, tool);
  const retry = retryWithin(described, limit);
  const timeoutMs = limit.timeoutMs ?? null;
  const isLess = timeoutMs !== null && timeoutMs < (described.timeoutMs ?? Infinity);
  return { ...(retry ? { retry } : {}), ...(isLess ? { timeoutMs } : {}) };
};
