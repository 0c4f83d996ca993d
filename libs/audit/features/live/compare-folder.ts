import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { FileFold, open as openFinding, violation } from '@antiphon/audit-domain';
import type { EventPlace, Finding, FoldedFile } from '@antiphon/audit-domain';
import { FileTreeEvent } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { acrossWorkspaces } from '@antiphon/database';
import { type About, nowhere } from '../audit-report.js';
import { EVENT_COLUMNS, type EventRow, toEvent, toPlace } from '../read-log/read-log.js';
import type { Poll } from './poll-within.js';

export const foldersEqualTheFiles: About = {
  name: 'folders-equal-the-files',
  about: 'the folder of every workspace has the files that the facts fold to, with their bytes and modes',
  counts: 'files',
};

interface Content {
  readonly digest: string;
  readonly isExecutable: boolean;
}
type Expected = ReadonlyMap<string, FoldedFile<EventPlace>>;
/** Null for a link or a special file: the service leaves it and does not record it. */
type Present = ReadonlyMap<string, Content | null>;

// The tree of a workspace is the one that does not begin as a fork.
const TREES_SQL = `select workspace, stream_id from events
  where category = 'file' and stream_version = 1 and stream_id like 'file-tree-%' and type <> 'FileTreeForked'
  order by workspace`;
const PAGE_SQL = `select ${EVENT_COLUMNS} from events
  where workspace = $1 and stream_id = $2 and stream_version > $3 order by stream_version limit 1000`;
const EXECUTABLE = 0o100;

interface Tree {
  readonly workspace: string;
  readonly stream_id: string;
}

/** Reads and folds the facts of a tree. */
const foldTree = async (pool: pg.Pool, { workspace, stream_id: streamId }: Tree): Promise<Expected> => {
  const fold = new FileFold<EventPlace>();
  for (let version = 0; ;) {
    const values = [workspace, streamId, version];
    const { rows } = await acrossWorkspaces(pool).query<EventRow>(PAGE_SQL, values);
    for (const row of rows) {
      const event = toEvent(row);
      version = event.streamVersion;
      fold.apply(FileTreeEvent.parse(upcast(event)), toPlace(event));
    }
    if (rows.length === 0) return fold.files;
  }
};

const readContent = async (path: string): Promise<Content | null> => {
  const stats = await lstat(path);
  if (!stats.isFile() || stats.nlink > 1) return null;
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const digest = createHash('sha256')
      .update(await handle.readFile())
      .digest('hex');
    return { digest, isExecutable: (stats.mode & EXECUTABLE) !== 0 };
  } finally {
    await handle.close();
  }
};

/** A file that disappears between the list and the read counts as absent. */
const isGone = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT';

const listFolder = async (root: string): Promise<Present> => {
  const found = new Map<string, Content | null>();
  const visit = async (folder: string, prefix: string): Promise<void> => {
    const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
      if (isGone(error)) return [];
      throw error;
    });
    for (const entry of entries) {
      const [path, full] = [`${prefix}${entry.name}`, join(folder, entry.name)];
      if (entry.isDirectory()) await visit(full, `${path}/`);
      else
        await readContent(full).then(
          (content) => found.set(path, content),
          (error: unknown) => {
            if (!isGone(error)) found.set(path, null);
          },
        );
    }
  };
  await visit(root, '');
  return found;
};

/** Returns the paths that the service could not write yet, from its own state. */
const readPending = async (folder: string, workspace: string): Promise<ReadonlySet<string>> => {
  const file = join(folder, '.antiphon', 'state', `${workspace}.json`);
  try {
    const state = JSON.parse(await readFile(file, 'utf8')) as { pending?: object };
    return new Set(Object.keys(state.pending ?? {}));
  } catch {
    return new Set();
  }
};

const compareFiles = (
  workspace: string,
  expected: Expected,
  present: Present,
  pending: ReadonlySet<string>,
): Finding[] => {
  const findings: Finding[] = [];
  for (const [path, { at, digest, mode }] of expected) {
    const isExecutable = (mode & EXECUTABLE) !== 0;
    const own = present.get(path);
    const found = pending.has(path) || own === null ? openFinding : violation;
    if (!own) findings.push(found(at, `${path} is not in the folder as a plain file`));
    else if (own.digest !== digest || own.isExecutable !== isExecutable)
      findings.push(found(at, `${path} has other bytes or another mode in the folder`));
  }
  for (const [path, content] of present) {
    if (expected.has(path)) continue;
    const message = `${path} is in the folder and not in the tree`;
    findings.push(
      content === null ? openFinding(nowhere(workspace), message) : violation(nowhere(workspace), message),
    );
  }
  return findings;
};

/**
 * Compares the folders of all workspaces with the fold of their facts. Links, special files and
 * files that wait to be written are open findings.
 */
export const compareFolders = async (
  pool: pg.Pool,
  folder: string,
  poll: Poll,
): Promise<{ readonly findings: readonly Finding[]; readonly checked: number }> => {
  const { rows } = await acrossWorkspaces(pool).query<Tree>(TREES_SQL);
  const found = { findings: [] as Finding[], checked: 0 };
  for (const tree of rows) {
    const { workspace } = tree;
    const compared = await poll(
      async () => {
        const expected = await foldTree(pool, tree);
        const present = await listFolder(join(folder, workspace));
        const pending = await readPending(folder, workspace);
        return { files: expected.size, findings: compareFiles(workspace, expected, present, pending) };
      },
      ({ findings }) => findings.every(({ kind }) => kind === 'open'),
    );
    found.checked += compared.files;
    found.findings.push(...compared.findings);
  }
  return found;
};
