import { lazy, Suspense, useState } from 'react';
import { useRefusal } from '../../data/act.js';
import { MAX_READ_BYTES, type FileContent } from '../../data/file-content.js';
import type { FileEntry } from '../../data/file-tree.js';
import { Link, setParams, useParam } from '../../data/router.js';
import { formatBytes } from '../../ui/format.js';
import { Button, Empty, Loading, Panel, ProblemBox } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { Comparison } from './comparison.js';
import { FileEditor } from './file-editor.js';
import { FileActions, FileFacts } from './file-head.js';
import { useShown, type Shown } from './shown-version.js';
import { useContent } from './use-content.js';
import { useVersions, Versions } from './versions.js';
import pages from '../pages.module.css';
import css from './files.module.css';

/** Offers the page of a plan, whose file this is. */
const PlanLink = ({ path }: { readonly path: string }) =>
  path.endsWith('.plan.md') ? (
    <p className={css.notice}>
      This file is a plan.{' '}
      <Link to={`/plans/${path.split('/').map(encodeURIComponent).join('/')}`}>Open its steps</Link>
    </p>
  ) : null;

/** Markdown is large, and a list of files shows none. */
const Content = lazy(async () => ({ default: (await import('./content.js')).Content }));

interface Start {
  readonly text: string;
  readonly digest: string | null;
}

/** Begins an edit when the address asks for it and the newest text is read. */
const useEdit = (entry: FileEntry, shown: Shown, text: string | null) => {
  const [start, setStart] = useState<Start | null>(null);
  const refusal = useRefusal('files:write');
  const isWanted = useParam('edit') !== '' && refusal === null && start === null;
  const canEdit = text !== null && shown.isNewest && !entry.is_virtual;
  if (isWanted && canEdit) setStart({ text, digest: entry.digest });
  const end = (): void => {
    setStart(null);
    setParams({ edit: null });
  };
  return { start, end };
};

interface BodyProps {
  readonly entry: FileEntry;
  readonly shown: Shown;
  readonly content: FileContent | null;
  readonly start: Start | null;
  readonly endEdit: () => void;
}

const Body = ({ entry, shown, content, start, endEdit }: BodyProps) => {
  if (start) return <FileEditor entry={entry} start={start} onEnd={endEdit} />;
  return (
    content && (
      <Suspense fallback={<Loading what="the file" />}>
        <Content {...{ path: entry.path, content, size: shown.size, digest: shown.digest }} />
      </Suspense>
    )
  );
};

/** Reads the content that is shown. A large one is read once a person asks for it. */
const useShownContent = (entry: FileEntry, shown: Shown) => {
  const [isAsked, setAsked] = useState(false);
  const isLarge = shown.size > MAX_READ_BYTES && !isAsked;
  const read = useContent(isLarge ? null : shown.place, shown.digest ?? String(entry.version));
  const text = read.content?.kind === 'text' ? read.content.text : null;
  return { ...read, text, isLarge, ask: () => setAsked(true) };
};

/** A file: its content, its versions, and what can be done with it. */
export const FileView = ({ entry }: { readonly entry: FileEntry }) => {
  const { path, is_virtual: isVirtual } = entry;
  const history = useVersions(path);
  const changes = history.data?.changes ?? [];
  const shown = useShown(entry, changes);
  const { content, text, problem, retry, isLarge, ask } = useShownContent(entry, shown);
  const { start, end } = useEdit(entry, shown, text);
  return (
    <>
      <Panel title={path}>
        <div className={css.fileHead}>
          <FileFacts entry={entry} shown={shown} changes={changes} />
          {!start && <FileActions {...{ entry, shown, text }} edit={() => setParams({ edit: '1' })} />}
        </div>
        <PlanLink path={path} />
        {!shown.isNewest && (
          <p className={css.notice} role="status">
            This is an older version. <Button onClick={() => setParams({ v: null })}>Show the newest</Button>
          </p>
        )}
        {problem && <ProblemBox problem={problem} retry={retry} />}
        {isLarge && (
          <Empty title={`This file has ${formatBytes(shown.size)}`}>
            <p>Reading it may take a moment.</p>
            <Button onClick={ask}>Read it</Button>
          </Empty>
        )}
        {!isLarge && !content && !problem && <Loading what="the file" />}
        <Body {...{ entry, shown, content, start, endEdit: end }} />
      </Panel>
      <Comparison changes={changes} shown={shown} />
      {isVirtual ? (
        <p className={pages.pad}>A chat has no versions of its own: its messages are in the log.</p>
      ) : (
        <Versions path={path} entry={entry} history={history} />
      )}
    </>
  );
};

/** A path without a file now: its versions tell what it had, and bring it back. */
export const MissingFile = ({ path }: { readonly path: string }) => {
  const history = useVersions(path);
  const changes = history.data?.changes ?? [];
  return (
    <>
      <Panel title={path}>
        <Empty title="There is no such file now">
          <p>
            <VisibleText text={path} />{' '}
            {changes.length > 0 ? 'is in the bin or was moved.' : 'never existed.'}
          </p>
        </Empty>
      </Panel>
      {changes.length > 0 && <Versions path={path} entry={null} history={history} />}
    </>
  );
};
