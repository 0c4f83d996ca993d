import { listTools } from '@antiphon/contracts/sandbox';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import type { RequestClient } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';

/** How old a description may be before it is fetched again, beside the call that uses it. */
const FRESH_MS = 5_000;

/** The sandbox's tools as they were described last. */
export interface ToolCatalog {
  /** The tools that an agent may call, in the order of its configuration. Asks the sandbox only if it never has. */
  toolsOf(workspace: string, names: readonly string[]): Promise<readonly ToolDescription[]>;
  /** The same, asked for anew: what somebody agrees to is what would run now. */
  freshToolsOf(workspace: string, names: readonly string[]): Promise<readonly ToolDescription[]>;
  /** What is known of a tool now. */
  known(workspace: string, name: string): ToolDescription | undefined;
}

interface Entry {
  readonly byName: ReadonlyMap<string, ToolDescription>;
  readonly fetchedAt: number;
}

/** Tools change when plug-ins do, which is rare: turns never wait for the list but once. */
export const createToolCatalog = (
  requests: RequestClient,
  logger: Logger,
  monotonicMs: () => number,
): ToolCatalog => {
  const entries = new Map<string, Entry>();
  const fetching = new Map<string, Promise<Entry>>();
  const missing = new Set<string>();

  const fetch = async (workspace: string): Promise<Entry> => {
    const { tools } = await requests.request(listTools, { workspace });
    const entry = { byName: new Map(tools.map((tool) => [tool.name, tool])), fetchedAt: monotonicMs() };
    entries.set(workspace, entry);
    return entry;
  };
  const refresh = (workspace: string): Promise<Entry> => {
    const running = fetching.get(workspace);
    if (running) return running;
    const started = fetch(workspace).finally(() => fetching.delete(workspace));
    fetching.set(workspace, started);
    return started;
  };
  const current = async (workspace: string): Promise<Entry> => {
    const entry = entries.get(workspace);
    if (!entry) return refresh(workspace);
    if (monotonicMs() - entry.fetchedAt > FRESH_MS)
      refresh(workspace).catch((error: unknown) =>
        logger.warn({ err: error }, 'the list of tools could not be read again; the last one stays'),
      );
    return entry;
  };
  const warnOnce = (name: string): void => {
    if (missing.has(name)) return;
    missing.add(name);
    logger.warn({ tool: name }, 'an agent names a tool that the sandbox does not have');
  };

  return {
    toolsOf: async (workspace, names) => {
      if (names.length === 0) return [];
      const { byName } = await current(workspace);
      return names.flatMap((name) => {
        const tool = byName.get(name);
        if (!tool) warnOnce(name);
        return tool ? [tool] : [];
      });
    },
    freshToolsOf: async (workspace, names) => {
      const { byName } = await fetch(workspace);
      return names.flatMap((name) => byName.get(name) ?? []);
    },
    known: (workspace, name) => entries.get(workspace)?.byName.get(name),
  };
};
