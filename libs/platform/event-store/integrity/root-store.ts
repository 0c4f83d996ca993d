import type { KeyObject } from 'node:crypto';
import { mkdir, open, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { conflict } from '@antiphon/kernel';
import type pg from 'pg';
import {
  hashRecord,
  isTreeRoot,
  type ParsedRoots,
  parseRootLines,
  parseSignedRoot,
  type SignedRoot,
  type SignedTreeRoot,
} from './signed-root.js';
import { isSignedByAny } from './signing-key.js';

/**
 * Number of the newest roots that the table keeps. The first record, epochs and adoptions stay,
 * because they show where the roots begin.
 */
const KEPT_ROOTS = 1_000;

/** Reads a file of signed roots. A missing file has none. */
export const readRootFile = async (file: string): Promise<ParsedRoots> => {
  try {
    return parseRootLines(await readFile(file, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { roots: [], badLines: [] };
    throw error;
  }
};

const endsWithLine = async (handle: Awaited<ReturnType<typeof open>>): Promise<boolean> => {
  const { size } = await handle.stat();
  if (size === 0) return true;
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer.toString() === '\n';
};

/**
 * Appends signed roots to a file, one line of JSON each, and syncs it to the disk. Begins a new
 * line first when a failed write has left a part of one.
 */
export const appendRoots = async (file: string, roots: readonly SignedTreeRoot[]): Promise<void> => {
  if (roots.length === 0) return;
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const handle = await open(file, 'a+', 0o644);
  try {
    const start = (await endsWithLine(handle)) ? '' : '\n';
    await handle.appendFile(`${start}${roots.map((root) => `${JSON.stringify(root)}\n`).join('')}`);
    await handle.sync();
  } finally {
    await handle.close();
  }
};

interface RootRow {
  readonly root: unknown;
}

/** False for the schema of an older version, which has no table of roots. */
export const hasRootTable = async (client: pg.ClientBase | pg.Pool, schema = 'public'): Promise<boolean> => {
  const { rows } = await client.query<{ name: string | null }>('select to_regclass($1) as name', [
    `${schema}.log_roots`,
  ]);
  return rows[0]?.name !== null;
};

/** Reads the roots that the table keeps, oldest first. Skips rows that are no signed root. */
export const readStoredRoots = async (
  client: pg.ClientBase | pg.Pool,
  schema = 'public',
): Promise<SignedRoot[]> => {
  if (!(await hasRootTable(client, schema))) return [];
  const { rows } = await client.query<RootRow>(`select root from ${schema}.log_roots order by number`);
  return rows.map(({ root }) => parseSignedRoot(root)).filter((root) => root !== null);
};

/** Reads the newest tree roots of the table, newest first. */
export const readNewestRoots = async (
  client: pg.ClientBase | pg.Pool,
  limit: number,
): Promise<SignedTreeRoot[]> => {
  const { rows } = await client.query<RootRow>('select root from log_roots order by number desc limit $1', [
    limit,
  ]);
  return rows.map(({ root }) => parseSignedRoot(root)).filter((root) => root !== null && isTreeRoot(root));
};

/** Deletes the rows that no trusted key signed, such as those of another installation. */
export const deleteForeignRoots = async (
  client: pg.ClientBase,
  publicKeys: readonly KeyObject[],
): Promise<void> => {
  const { rows } = await client.query<RootRow & { readonly number: string }>(
    'select number, root from log_roots',
  );
  const foreign = rows.filter(({ root }) => {
    const signed = parseSignedRoot(root);
    return signed === null || !isSignedByAny(signed, publicKeys);
  });
  const numbers = foreign.map(({ number }) => number);
  if (numbers.length > 0) await client.query('delete from log_roots where number = any ($1)', [numbers]);
};

const INSERT_SQL = `insert into log_roots (number, kind, position, hash, root, signed_at) values ($1, $2, $3, $4, $5, $6)
  on conflict (number) do nothing`;
const SWEEP_SQL = `delete from log_roots where kind = 'root' and number > 1 and number <= $1`;

/**
 * Stores a root in the table and deletes roots that are older than the newest thousand. Rejects
 * with `LOG.ROOT_FORKED` when another record has its number.
 */
export const storeRoot = async (client: pg.ClientBase | pg.Pool, root: SignedTreeRoot): Promise<void> => {
  const { number, kind, position, at } = root;
  const hash = Buffer.from(hashRecord(root), 'hex');
  const inserted = await client.query(INSERT_SQL, [number, kind, position, hash, JSON.stringify(root), at]);
  if (inserted.rowCount === 0) {
    const { rows } = await client.query<{ hash: Buffer }>('select hash from log_roots where number = $1', [
      number,
    ]);
    if (rows[0]?.hash.equals(hash) !== true)
      throw conflict('LOG.ROOT_FORKED', `the table log_roots has another record ${number} than the signer`);
  }
  await client.query(SWEEP_SQL, [number - KEPT_ROOTS]);
};
