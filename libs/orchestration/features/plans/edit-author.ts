import type { FileEntry, FileTree } from '@antiphon/files-domain';
import type { FileTrees } from '@antiphon/files-features';
import { fileTreeIdOf } from '@antiphon/agent-log';
import type { PlanRef } from './plan-store.js';

/** Author of an edit of a plan's file. */
export interface Author {
  readonly kind: 'person' | 'agent';
  readonly actor: string;
  readonly agentId: string | null;
}

/** Maximum number of changes of the tree that are read to find the authors of an edit. */
const MAX_FACTS = 500;

type Trees = Pick<FileTrees, 'readFacts'>;

/** Returns the actors of the changes of a file since the plan was rendered, newest first. */
const actorsOf = async (
  trees: Trees,
  { workspace, path }: PlanRef,
  tree: FileTree,
  { version }: FileEntry,
  rendered: string | null,
): Promise<string[]> => {
  const beforeVersion = version - (tree.base?.version ?? 0) + 1;
  if (beforeVersion <= 1) return [];
  const bounds = { beforeVersion, limit: MAX_FACTS };
  const { events } = await trees.readFacts(workspace, fileTreeIdOf(workspace), bounds);
  const own = events.filter(({ data }) => data['path'] === path || data['to'] === path);
  const known = own.findIndex(({ data }) => rendered !== null && data['digest'] === rendered);
  const edits = known < 0 ? own : own.slice(0, known);
  return edits.map(({ data }) => (data['cause'] as { actor?: string }).actor ?? 'runtime');
};

/**
 * Returns the author of the edits that are not facts yet. One by an agent makes all of them its
 * own: a person's next edit does not complete its ticks.
 */
export const findAuthor = async (
  trees: Trees,
  ref: PlanRef,
  tree: FileTree,
  file: FileEntry,
  rendered: string | null,
): Promise<Author> => {
  const actors = await actorsOf(trees, ref, tree, file, rendered);
  const agent = actors.find((actor) => actor.startsWith('agent/'));
  return {
    kind: agent === undefined ? 'person' : 'agent',
    actor: agent ?? actors[0] ?? 'runtime',
    agentId: agent?.slice('agent/'.length) ?? null,
  };
};
