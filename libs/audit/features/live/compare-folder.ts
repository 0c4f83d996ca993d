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
import { pageSql } from '@antiphon/event-store';
import { type About, nowhere } from '../audit-report.js';
import { type EventRow, toEvent, toPlace } from '../read-log/read-log.js';
import type { Poll } from './poll-within.js';

export const foldersEqualTheFiles: About = {
  name: 'folders-equal-the-files',
  about: 'the folder of every workspace has the files that the facts fold to, with their bytes',
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
const PAGE_SQL = pageSql(
  'where workspace = $1 and stream_id = $2 and stream_version > $3 order by stream_version limit 1000',
  'stream_version',
);
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
      // The mark of a copy, or a repository that a person made: git stops here, and it is no file.
      if (prefix === '' && entry.name === '.git') continue;
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

/** State of a folder that its service stores next to it. */
interface FolderState {
  /** Paths that could not be written yet. */
  readonly pending: ReadonlySet<string>;
  /** Paths and folders that are neither written nor recorded, such as unsafe names. */
  readonly leftOut: readonly string[];
  /** True if the modes of files are not those of the tree: a person decides what is run. */
  readonly isPlain: boolean;
}

const readState = async (folder: string, workspace: string): Promise<FolderState> => {
  const file = join(folder, '.antiphon', 'state', `${workspace}.json`);
  try {
    const { pending, leftOut, isPlain } = JSON.parse(await readFile(file, 'utf8')) as {
      readonly pending?: object;
      readonly leftOut?: readonly string[];
      readonly isPlain?: boolean;
    };
    return {
      ...{ pending: new Set(Object.keys(pending ?? {})), leftOut: leftOut ?? [] },
      isPlain: isPlain === true,
    };
  } catch {
    return { pending: new Set(), leftOut: [], isPlain: false };
  }
};

const compareFiles = (
  workspace: string,
  expected: Expected,
  present: Present,
  { pending, leftOut, isPlain }: FolderState,
): Finding[] => {
  const findings: Finding[] = [];
  const isLeftOut = (path: string): boolean =>
    leftOut.some((name) => path === name || path.startsWith(`${name}/`));
  for (const [path, { at, digest, mode }] of expected) {
    const isExecutable = (mode & EXECUTABLE) !== 0;
    const own = present.get(path);
    const found = pending.has(path) || own === null || isLeftOut(path) ? openFinding : violation;
    if (!own) findings.push(found(at, `${path} is not in the folder as a plain file`));
    else if (own.digest !== digest || (!isPlain && own.isExecutable !== isExecutable))
      findings.push(found(at, `${path} has other bytes or another mode in the folder`));
  }
  for (const [path, content] of present) {
    if (expected.has(path)) continue;
    const message = `${path} is in the folder and not in the tree`;
    const found = content === null || isLeftOut(path) ? openFinding : violation;
    findings.push(found(nowhere(workspace), message));
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
        const state = await readState(folder, workspace);
        return { files: expected.size, findings: compareFiles(workspace, expected, present, state) };
      },
      ({ findings }) => findings.every(({ kind }) => kind === 'open'),
    );
    found.checked += compared.files;
    found.findings.push(...compared.findings);
  }
  return found;
};
