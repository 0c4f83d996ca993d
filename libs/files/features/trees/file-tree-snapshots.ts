import type pg from 'pg';
import { fileTreeStream } from '@antiphon/contracts/agent';
import { foldCase, foldersOf, streamVersionOf } from '@antiphon/files-domain';
import type { CallVersions, FileEntry, FileTree } from '@antiphon/files-domain';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';

/** Form of a stored state. Raise it with each change of the fold. */
const FORM = 3;

/** Stored form of a fold: names are built again. */
interface SnapshotState extends Pick<FileTree, 'base' | 'version' | 'bytes' | 'quotas'> {
  readonly files: readonly FileEntry[];
  readonly bin: readonly (readonly [number, FileEntry])[];
  readonly calls: readonly (readonly [string, CallVersions])[];
}

const toState = ({ base, version, bytes, quotas, files, bin, calls }: FileTree): SnapshotState => ({
  ...{ base, version, bytes, quotas },
  ...{ files: [...files.values()], bin: [...bin], calls: [...calls] },
});

const fromState = ({ base, version, bytes, quotas, files, bin, calls }: SnapshotState): FileTree => {
  const names = new Map<string, { path: string; files: number }>();
  for (const { path } of files) {
    names.set(foldCase(path), { path, files: 0 });
    for (const folder of foldersOf(path)) {
      const key = foldCase(folder);
      names.set(key, { path: folder, files: (names.get(key)?.files ?? 0) + 1 });
    }
  }
  const byPath = new Map(files.map((file) => [file.path, file]));
  const state = { base, version, bytes, quotas };
  return { ...state, files: byPath, names, bin: new Map(bin), calls: new Map(calls) };
};

const READ_SQL = `select s.state from file_tree_snapshots s
  join events e on e.workspace = s.workspace and e.stream_id = $4 and e.stream_version = s.version and e.hash = s.head_hash
  where s.workspace = $1 and s.tree_id = $2 and s.form = $3`;
const WRITE_SQL = `insert into file_tree_snapshots as s (workspace, tree_id, version, state, form, head_hash)
  select $1, $2::uuid, $4, $5::jsonb, $3, e.hash
  from events e where e.workspace = $1 and e.stream_id = $6 and e.stream_version = $4
  on conflict (workspace, tree_id) do update
    set version = excluded.version, state = excluded.state, form = excluded.form, head_hash = excluded.head_hash
  where s.form <> excluded.form or s.version < excluded.version`;

/**
 * Snapshots of the folds of trees. They are a cache of the log: any of them may be deleted at any
 * time.
 */
export class FileTreeSnapshots {
  constructor(private readonly pool: pg.Pool) {}

  async read(workspace: string, treeId: string): Promise<FileTree | null> {
    const values = [workspace, treeId, FORM, fileTreeStream(treeId)];
    const rows = await this.query<{ state: SnapshotState }>(
      workspace,
      'file_snapshot_read',
      READ_SQL,
      values,
    );
    return rows[0] ? fromState(rows[0].state) : null;
  }

  async write(workspace: string, treeId: string, tree: FileTree): Promise<void> {
    const state = JSON.stringify(toState(tree));
    const version = streamVersionOf(tree);
    const values = [workspace, treeId, FORM, version, state, fileTreeStream(treeId)];
    await this.query(workspace, 'file_snapshot_write', WRITE_SQL, values);
  }

  private async query<Row extends pg.QueryResultRow>(
    workspace: string,
    name: string,
    text: string,
    values: unknown[],
  ): Promise<Row[]> {
    try {
      return (await inWorkspace(this.pool, workspace).query<Row>({ name, text, values })).rows;
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }
}
