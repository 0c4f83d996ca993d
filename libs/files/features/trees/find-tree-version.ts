import { fileTreeStream } from '@antiphon/contracts/agent';
import type { EventStore } from '@antiphon/event-store';
import type { FileTrees } from './file-trees.js';

interface TreeReads {
  readonly trees: Pick<FileTrees, 'readFacts'>;
  readonly store: Pick<EventStore, 'readStreamPage'>;
}

/** Finds the version that the event stream of a tree had at a position of the log, by bisection. */
export const findTreeVersion = async (
  { trees, store }: TreeReads,
  workspace: string,
  treeId: string,
  upTo: number,
): Promise<number> => {
  const { events } = await trees.readFacts(workspace, treeId, { limit: 1 });
  let known = 0;
  let beyond = (events[0]?.streamVersion ?? 0) + 1;
  while (beyond - known > 1) {
    const fromVersion = Math.floor((known + beyond) / 2);
    const page = await store.readStreamPage(workspace, fileTreeStream(treeId), {
      fromVersion,
      limit: 1,
    });
    const position = page.events[0]?.position ?? Infinity;
    if (position <= upTo) known = fromVersion;
    else beyond = fromVersion;
  }
  return known;
};
