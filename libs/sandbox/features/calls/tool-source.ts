import type { ToolDescription, ToolSourceKind } from '@antiphon/contracts/sandbox';
import type { ToolOutcome } from '@antiphon/sandbox-domain';
import type { CallToolRequest } from './call-registry.js';

/** One call, as the tool that runs it sees it. */
export interface HostedCall {
  readonly request: CallToolRequest;
  /** The input as JSON, in UTF-8. */
  readonly input: Buffer;
  /** Timeout of the call, ms: the tool's own, or the shorter one that the caller wants. */
  readonly timeoutMs: number;
  /** Aborts when the call is cancelled. */
  readonly signal: AbortSignal;
  /** Returns why a call that waits need not begin any more, or null. */
  readonly findObstacle: () => string | null;
  /**
   * Waits until the caller permits the first effect outside of this process, and for each further
   * one until the caller waits for the call. A failure after it counts as one that may have acted.
   * Rejects if the caller gave the call up, or cannot be reached until `ended` aborts. A tool that
   * can act outside must await it before it does.
   */
  readonly begin: (ended: AbortSignal) => Promise<void>;
}

/**
 * End of a call. After `unavailable` the tool did not run, and the caller may try again. After
 * `stopped` this process ends, and does not know how far the call came.
 */
export type HostedEnd =
  | { readonly end: 'outcome'; readonly outcome: ToolOutcome }
  | { readonly end: 'unavailable'; readonly message: string }
  | { readonly end: 'stopped' };

/** A tool of this service, of any kind. */
export interface HostedTool {
  /** `moduleDigest` is the digest of its module, registration or description. */
  readonly description: ToolDescription;
  run(call: HostedCall): Promise<HostedEnd>;
}

/** All tools of one kind. */
export interface ToolSource {
  readonly kind: ToolSourceKind;
  /** Returns the tools that a workspace may call. */
  list(workspace: string): Promise<readonly ToolDescription[]>;
  /** Returns a tool that a workspace may call. */
  find(workspace: string, name: string): Promise<HostedTool | undefined>;
  /** Returns why a tool of this name cannot be called; undefined if this source does not know it. */
  explainAbsence?(workspace: string, name: string): Promise<ToolOutcome | undefined>;
}

/** Returns the first tool of a name, in the order of the sources. */
export const findHostedTool = async (
  sources: readonly ToolSource[],
  workspace: string,
  name: string,
): Promise<HostedTool | undefined> => {
  for (const source of sources) {
    const tool = await source.find(workspace, name);
    if (tool) return tool;
  }
  return undefined;
};

/** Lists the tools of all sources. A name that an earlier source has hides later ones. */
export const listHostedTools = async (
  sources: readonly ToolSource[],
  workspace: string,
): Promise<ToolDescription[]> => {
  const byName = new Map<string, ToolDescription>();
  for (const source of sources)
    for (const tool of await source.list(workspace)) if (!byName.has(tool.name)) byName.set(tool.name, tool);
  return [...byName.values()];
};
