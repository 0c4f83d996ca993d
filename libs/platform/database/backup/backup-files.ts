import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { invalid } from '@antiphon/kernel';
import { readGzipLines } from '../gzip-lines.js';

export interface BackedUpTable {
  readonly name: string;
  readonly rows: number;
  /** Hex SHA-256 of the file `tables/<name>.jsonl.gz`. */
  readonly sha256: string;
}

/** Content of `manifest.json`. */
export interface BackupManifest<Facts> {
  readonly kind: 'antiphon-backup';
  readonly format: 1;
  /** Names of the migrations that the database had. */
  readonly migrations: readonly string[];
  readonly tables: readonly BackedUpTable[];
  /** Data that the caller read on the snapshot of the backup. */
  readonly facts: Facts;
  /** Signature over the other fields; missing where no key signs. */
  readonly keyId?: string;
  readonly signature?: string;
}

export const tableFile = (folder: string, name: string): string => join(folder, 'tables', `${name}.jsonl.gz`);
const manifestFile = (folder: string): string => join(folder, 'manifest.json');

export const writeManifest = (folder: string, manifest: BackupManifest<unknown>): Promise<void> =>
  writeFile(manifestFile(folder), `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600, flush: true });

/** Returns the text of a manifest. Throws `BACKUP.DAMAGED` when it cannot be read. */
export const readManifestText = async (folder: string): Promise<string> => {
  try {
    return await readFile(manifestFile(folder), 'utf8');
  } catch (cause) {
    throw invalid('BACKUP.DAMAGED', `${folder} holds no complete backup: ${(cause as Error).message}`, {
      cause,
    });
  }
};

/** Names that a backup may use in SQL and in paths. */
const NAME = /^[a-z_][a-z0-9_]{0,62}$/;
const MIGRATION = /^[0-9]{14}_[a-z0-9_]{1,200}$/;
const SHA256 = /^[0-9a-f]{64}$/;

type Fields = Readonly<Record<string, unknown>>;

const isTable = (value: unknown): boolean => {
  if (typeof value !== 'object' || value === null) return false;
  const { name, rows, sha256 } = value as Fields;
  return (
    typeof name === 'string' &&
    NAME.test(name) &&
    Number.isSafeInteger(rows) &&
    typeof sha256 === 'string' &&
    SHA256.test(sha256)
  );
};

/**
 * True for a manifest whose names are plain. They become part of statements and paths, and a
 * manifest is input of others, also where it is signed.
 */
const isManifest = (value: unknown): boolean => {
  if (typeof value !== 'object' || value === null) return false;
  const { kind, format, migrations, tables, facts } = value as Fields;
  if (kind !== 'antiphon-backup' || format !== 1 || typeof facts !== 'object' || facts === null) return false;
  if (!Array.isArray(migrations) || !Array.isArray(tables) || !tables.every(isTable)) return false;
  const names = (tables as readonly BackedUpTable[]).map(({ name }) => name);
  return (
    new Set(names).size === names.length &&
    migrations.every((name) => typeof name === 'string' && MIGRATION.test(name))
  );
};

/** Reads a manifest. Throws `BACKUP.DAMAGED` when the folder holds no complete backup. */
export const readManifest = async <Facts>(folder: string): Promise<BackupManifest<Facts>> => {
  const text = await readManifestText(folder);
  try {
    const manifest = JSON.parse(text) as unknown;
    if (isManifest(manifest)) return manifest as BackupManifest<Facts>;
  } catch (cause) {
    throw invalid('BACKUP.DAMAGED', `${folder} holds no complete backup: ${(cause as Error).message}`, {
      cause,
    });
  }
  throw invalid(
    'BACKUP.DAMAGED',
    `${folder} holds no backup that this version reads: its manifest has another form or a name that is not plain`,
  );
};

/** Writes lines to a compressed, synced file and returns its SHA-256 in hex. */
export const writeLines = async (file: string, pages: AsyncIterable<readonly string[]>): Promise<string> => {
  const hash = createHash('sha256');
  const toText = async function* () {
    for await (const lines of pages) yield lines.map((line) => `${line}\n`).join('');
  };
  const withHash = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      hash.update(chunk);
      yield chunk;
    }
  };
  const out = createWriteStream(file, { mode: 0o600, flush: true });
  await pipeline(Readable.from(toText()), createGzip(), withHash, out);
  return hash.digest('hex');
};

/** Throws `BACKUP.DAMAGED` when a file is missing or its SHA-256 differs. */
export const checkFile = async (file: string, sha256: string): Promise<void> => {
  const hash = createHash('sha256');
  try {
    await pipeline(createReadStream(file), hash);
  } catch (cause) {
    throw invalid('BACKUP.DAMAGED', `${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
  if (hash.digest('hex') !== sha256)
    throw invalid('BACKUP.DAMAGED', `${file} was changed after it was written: its SHA-256 differs`);
};

/** Characters of a page. */
const PAGE_CHARS = 16 * 1024 * 1024;
/** Characters of a line: PostgreSQL's limit of the JSON from which it is written. */
const LINE_CHARS = 256 * 1024 * 1024;

/**
 * Reads the lines of the file of a table in pages bounded in number and length. Throws
 * `BACKUP.DAMAGED` for a line that no row needs, and for more lines than the table had rows.
 */
export const readLines = (
  folder: string,
  { name, rows }: Pick<BackedUpTable, 'name' | 'rows'>,
  pageRows: number,
): AsyncGenerator<string[], void, undefined> => {
  const file = tableFile(folder, name);
  const refuse = (reason: string): Error => invalid('BACKUP.DAMAGED', `${file} ${reason}`);
  return readGzipLines(file, { pageRows, pageChars: PAGE_CHARS, lineChars: LINE_CHARS, lines: rows, refuse });
};
