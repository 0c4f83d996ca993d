import type pg from 'pg';
import { findNewestRoot, isTreeRoot, type SignedRoot, type SignedTreeRoot } from './signed-root.js';

/**
 * Events of an installation that has not been used yet: its configured agents and its first key.
 * The first root may cover them, because services append them while the signer starts.
 */
const INSTALLATION_EVENTS = [
  'AgentReady',
  'AgentSpawned',
  'KeyCreated',
  'TreeMemberAdmitted',
  'TreeOpened',
  'WorkspaceCreated',
] as const;

/** The first record of the signed roots, or the newest adoption: the coverage begins with it. */
export interface RootsBegin {
  readonly record: SignedRoot;
  /** False where the first record is missing, such as after its row was deleted. */
  readonly isFirst: boolean;
}

const isAdoption = (root: SignedTreeRoot): boolean => root.kind === 'adoption';

/** Finds where the coverage of signed roots begins; null without a root. */
export const findRootsBegin = (roots: readonly SignedRoot[]): RootsBegin | null => {
  const trees = roots.filter(isTreeRoot);
  const adoption = findNewestRoot(trees.filter(isAdoption));
  if (adoption) return { record: adoption, isFirst: true };
  const [old] = roots.filter((root) => !isTreeRoot(root)).toSorted((a, b) => a.position - b.position);
  const [first] = trees.toSorted((a, b) => a.number - b.number);
  const record = old ?? first;
  return record === undefined ? null : { record, isFirst: old !== undefined || first?.number === 1 };
};

/** An event that was in the log before its signed roots began. */
export interface EarlyEvent {
  readonly position: number;
  readonly type: string;
}

const FIRST_USE_SQL = `select position, type from events where position <= $1 and type <> all ($2)
  order by position limit 1`;

/** Finds the first event up to a position that shows a log in use; null in a new installation. */
export const findFirstUse = async (
  client: pg.ClientBase | pg.Pool,
  position: number,
): Promise<EarlyEvent | null> => {
  const { rows } = await client.query<{ position: string; type: string }>(FIRST_USE_SQL, [
    position,
    INSTALLATION_EVENTS,
  ]);
  const [first] = rows;
  return first === undefined ? null : { position: Number(first.position), type: first.type };
};

/**
 * Returns an event of a log in use that the first record covers. Returns null where the roots begin
 * with the log, with a signed restore or with an adoption.
 */
export const findEarlyEvent = (
  client: pg.ClientBase | pg.Pool,
  { record, isFirst }: RootsBegin,
): Promise<EarlyEvent | null> =>
  isFirst && (!isTreeRoot(record) || record.kind === 'root')
    ? findFirstUse(client, record.position)
    : Promise.resolve(null);
