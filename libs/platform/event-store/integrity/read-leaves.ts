import type pg from 'pg';
import type { LeafFields, LogTree } from './log-tree.js';
import type { SignedTreeRoot } from './signed-root.js';

interface LeafRow {
  readonly position: string;
  readonly workspace: string;
  readonly recorded_at: Date;
  readonly hash: string;
}

const LEAVES_SQL = `select position, workspace, recorded_at, encode(hash, 'hex') as hash from events
  where position > $1 and position <= $2 order by position limit $3`;
const PAGE = 5_000;

/**
 * Reads the leaves of the events after a position, up to another, one page at a time. Reads the
 * table or view `events` that the client sees.
 */
export async function* readLeaves(
  client: pg.ClientBase | pg.Pool,
  after: number,
  upTo: number,
): AsyncGenerator<LeafFields, void, undefined> {
  let last = after;
  for (;;) {
    const { rows } = await client.query<LeafRow>(LEAVES_SQL, [last, upTo, PAGE]);
    for (const { position, workspace, recorded_at: at, hash } of rows) {
      last = Number(position);
      yield { position: last, workspace, recordedAt: at.toISOString(), hash };
    }
    if (rows.length < PAGE || last >= upTo) return;
  }
}

/** End of the log and its base, as the table `log_head` and the events tell. */
export interface LogState {
  readonly epoch: number;
  /** Position up to which events may be archived. */
  readonly base: number;
  /** Position of the newest event, or `base`. */
  readonly position: number;
}

const STATE_SQL = `select h.epoch, h.base_position as base,
  coalesce((select e.position from events e order by e.position desc limit 1), h.base_position) as position
  from log_head h where h.id = 1`;

export const readLogState = async (client: pg.ClientBase | pg.Pool): Promise<LogState> => {
  const { rows } = await client.query<Record<keyof LogState, string>>(STATE_SQL);
  const { epoch = 1, base = 0, position = 0 } = rows[0] ?? {};
  return { epoch: Number(epoch), base: Number(base), position: Number(position) };
};

/** First place where the log differs from what its signed roots cover. */
export interface CoverageBreak {
  readonly position: number;
  readonly reason: string;
}

const compareRoots = (tree: LogTree, roots: readonly SignedTreeRoot[]): CoverageBreak | null => {
  const changed = roots.find((root) => root.position === tree.position && root.root !== tree.hash());
  if (!changed) return null;
  const { number, position, at } = changed;
  return {
    position,
    reason: `the log up to position ${position} is not what record ${number} signed at ${at}`,
  };
};

/**
 * Adds the events after the tree's end, up to a position. Compares the tree with each root at its
 * position. Returns the first root that differs or the first missing event; null when all match.
 */
export const growTree = async (
  client: pg.ClientBase | pg.Pool,
  tree: LogTree,
  upTo: number,
  roots: readonly SignedTreeRoot[] = [],
): Promise<CoverageBreak | null> => {
  const compared = roots.filter(({ base }) => base === tree.base);
  let found = compareRoots(tree, compared);
  if (found || upTo <= tree.position) return found;
  for await (const leaf of readLeaves(client, tree.position, upTo)) {
    const expected = tree.position + 1;
    if (leaf.position !== expected)
      return { position: expected, reason: `the log has no event at position ${expected}` };
    tree.add(leaf);
    found = compareRoots(tree, compared);
    if (found) return found;
  }
  if (tree.position === upTo) return null;
  return { position: tree.position, reason: `the log ends at position ${tree.position}, not at ${upTo}` };
};
