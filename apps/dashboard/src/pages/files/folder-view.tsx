import type { RouteReply } from '@antiphon/client';
import { useAct } from '../../data/act.js';
import { nameOf, type FileEntry } from '../../data/file-tree.js';
import { client } from '../../data/gateway.js';
import { useIdentity } from '../../data/identity.js';
import { Link } from '../../data/router.js';
import { useFetched } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { countOf, formatBytes } from '../../ui/format.js';
import { Empty, Loading, numberColumn, Panel, ProblemBox, Table, Time, css as ui } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { ChangeButtons, type Changed } from './dialogs.js';
import { pageOfFile } from './open-path.js';
import { changesFiles, useFilePosition } from './use-tree.js';
import pages from '../pages.module.css';
import css from './files.module.css';

const By = ({ entry }: { readonly entry: FileEntry }) =>
  entry.changedBy === null ? (
    <span className={ui.muted}>built when read</span>
  ) : (
    <VisibleText text={entry.changedBy} />
  );

/** Most rows of a folder next to its tree, which has them all. Both have 100 rows at most. */
const MAX_ROWS = 50;

/** The folder itself, if all of its entries are read: a removal names the number of its files. */
const folderOfList = (path: string, { entries, total }: RouteReply<'listFiles'>): Changed | null => {
  if (path === '' || total === 0 || entries.length < total || entries.some((entry) => entry.is_virtual))
    return null;
  const files = entries.reduce((sum, entry) => sum + (entry.files ?? 1), 0);
  return { path, digest: null, files };
};

/** Entries of a folder, with the time and the actor of the last change. */
export const FolderView = ({ path, list }: { path: string; list: RouteReply<'listFiles'> }) => {
  const folder = folderOfList(path, list);
  return (
    <Panel
      title={`${path === '' ? 'Workspace' : path}: ${countOf(list.total, 'item')}`}
      actions={folder && <ChangeButtons entry={folder} />}
    >
      {list.total === 0 ? (
        <Empty title="Nothing is in here">
          <p>Upload files, or drop them anywhere on this page.</p>
        </Empty>
      ) : (
        <Table
          label="Entries of the folder"
          columns={['Name', numberColumn('Size'), 'Changed by', 'Changed']}
        >
          {list.entries.slice(0, MAX_ROWS).map((entry) => (
            <tr key={entry.path}>
              <td className={pages.contentCell}>
                <Link to={pageOfFile(entry.path)} className={pages.name}>
                  <VisibleText text={nameOf(entry.path) + (entry.kind === 'folder' ? '/' : '')} />
                </Link>
              </td>
              <td data-end="">
                {entry.kind === 'folder' ? countOf(entry.files ?? 0, 'file') : formatBytes(entry.size)}
              </td>
              <td>
                <By entry={entry} />
              </td>
              <td>{entry.changedAt === null ? '' : <Time at={entry.changedAt} />}</td>
            </tr>
          ))}
        </Table>
      )}
      {list.total > MAX_ROWS && (
        <p className={css.left}>
          The first {MAX_ROWS} are shown here. The tree has all {list.total}.
        </p>
      )}
    </Panel>
  );
};

const BIN_PAGE = 500;

/** Files that were deleted, newest first. */
export const BinView = () => {
  const { workspace, permissions } = useIdentity();
  const position = useFilePosition();
  const { run, isBusy, problem } = useAct();
  const key = permissions === null ? null : `bin ${workspace} ${JSON.stringify(position)}`;
  const query = { bin: 'true', recursive: 'true', limit: BIN_PAGE, ...position } as const;
  const read = useFetched(
    key,
    (signal) => client.http.listFiles({ params: { id: workspace }, query, signal }),
    changesFiles,
  );
  const restore = (entry: FileEntry): void =>
    run(() =>
      client.http.changeFiles({
        params: { id: workspace },
        body: { changes: [{ op: 'restore', path: entry.path, version: entry.version, expect: null }] },
      }),
    );
  const { data } = read;
  const entries = data?.entries.toSorted((a, b) => b.version - a.version) ?? [];
  return (
    <Panel title={data ? `Bin: ${countOf(data.total, 'file')}` : 'Bin'}>
      {read.problem && <ProblemBox problem={read.problem} retry={read.refresh} />}
      {problem && <ProblemBox problem={problem} />}
      {!data && !read.problem && <Loading what="the bin" />}
      {data?.total === 0 && (
        <Empty title="The bin is empty">
          <p>Files that are moved to the bin wait here, and nothing empties it by itself.</p>
        </Empty>
      )}
      {entries.length > 0 && (
        <Table
          label="Files in the bin"
          columns={['Path', numberColumn('Size'), 'Deleted by', 'Deleted', 'Actions']}
        >
          {entries.map((entry) => (
            <tr key={entry.version}>
              <td className={pages.contentCell}>
                <Link to={pageOfFile(entry.path)}>
                  <VisibleText text={entry.path} />
                </Link>
              </td>
              <td data-end="">{formatBytes(entry.size)}</td>
              <td>
                <By entry={entry} />
              </td>
              <td>{entry.changedAt !== null && <Time at={entry.changedAt} />}</td>
              <td>
                <ActButton permission="files:write" isOff={isBusy} onClick={() => restore(entry)}>
                  Restore
                </ActButton>
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Panel>
  );
};
