import { lazy, Suspense, useEffect, useState } from 'react';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { useIdentity } from '../../data/identity.js';
import { readRoleFile, roleOfPath } from '../../data/role-file.js';
import { guardLeave, setParams } from '../../data/router.js';
import { toProblem } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { Diff } from '../../ui/diff.js';
import { Button, css as ui, Dialog, Loading, ProblemBox } from '../../ui/ui.js';
import type { FileEntry } from '../../data/file-tree.js';
import { readBytes } from './use-content.js';
import css from './files.module.css';

const CodeText = lazy(async () => ({ default: (await import('./code.js')).CodeText }));
const RoleForm = lazy(async () => ({ default: (await import('./role-view.js')).RoleForm }));
const MergeText = lazy(async () => ({ default: (await import('./merge.js')).MergeText }));

/** A version that was stored after the edited one was read. A digest of null: the file is gone. */
interface Conflict {
  readonly digest: string | null;
  readonly diff: string | null;
  readonly message: string;
}

const conflictOf = (error: unknown): Conflict | null => {
  const { code, message } = toProblem(error);
  if (code === 'FILE.NOT_FOUND') return { digest: null, diff: null, message };
  if (code !== 'FILE.STALE' && code !== 'FILE.EXISTS') return null;
  const { data } = (error as { readonly data?: { readonly data?: Record<string, unknown> } }).data ?? {};
  const [digest, diff] = [data?.['digest'], data?.['diff']];
  return {
    digest: typeof digest === 'string' ? digest : null,
    diff: typeof diff === 'string' ? diff : null,
    message,
  };
};

/** Asks before a changed text is left. */
const useLeave = (isChanged: boolean) => {
  const [leave, setLeave] = useState<(() => void) | null>(null);
  useEffect(() => {
    if (!isChanged) return;
    const onUnload = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener('beforeunload', onUnload);
    const stop = guardLeave((proceed) => {
      setLeave(() => proceed);
      return false;
    });
    return () => {
      removeEventListener('beforeunload', onUnload);
      stop();
    };
  }, [isChanged]);
  return { leave, ask: (work: () => void) => setLeave(() => work), stay: () => setLeave(null) };
};

interface EditorProps {
  readonly entry: FileEntry;
  /** Text and digest that were read when the edit began. */
  readonly start: { readonly text: string; readonly digest: string | null };
  readonly onEnd: () => void;
}

const useEditor = ({ entry, start, onEnd }: EditorProps) => {
  const { workspace } = useIdentity();
  const act = useAct();
  const [text, setText] = useState(start.text);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const [merge, setMerge] = useState<{ theirs: string; digest: string } | null>(null);
  const { path } = entry;
  const save = (expect: string | null): void =>
    act.run(async () => {
      try {
        await client.http.writeFile({
          params: { id: workspace, path },
          query: { expect: expect ?? 'none' },
          upload: new TextEncoder().encode(text),
        });
      } catch (error) {
        const found = conflictOf(error);
        if (!found) throw error;
        return setConflict(found);
      }
      onEnd();
    });
  const beginMerge = (digest: string): void =>
    act.run(async () => {
      const theirs = new TextDecoder().decode(await readBytes(workspace, { path }));
      setConflict(null);
      setMerge({ theirs, digest });
    });
  return { act, text, setText, conflict, setConflict, merge, save, beginMerge };
};

interface ConflictProps {
  readonly editor: ReturnType<typeof useEditor>;
  readonly conflict: Conflict;
  readonly takeTheirs: () => void;
}

/** Another writer was faster: three ways to continue, and none loses a version. */
const ConflictDialog = ({ editor, conflict, takeTheirs }: ConflictProps) => {
  const { digest, diff, message } = conflict;
  return (
    <Dialog title="The file changed while you edited it" onClose={() => editor.setConflict(null)}>
      <p>{message}</p>
      {diff !== null && <Diff text={diff} label="Changes since you began" />}
      {editor.act.problem && <ProblemBox problem={editor.act.problem} />}
      <div className={ui.dialogFoot}>
        <Button onClick={takeTheirs}>{digest === null ? 'Drop my text' : 'Take theirs'}</Button>
        {digest !== null && (
          <Button disabled={editor.act.isBusy} onClick={() => editor.beginMerge(digest)}>
            Merge by hand
          </Button>
        )}
        <ActButton
          permission="files:write"
          look="primary"
          isOff={editor.act.isBusy}
          onClick={() => editor.save(digest)}
        >
          Save mine over it
        </ActButton>
      </div>
    </Dialog>
  );
};

interface TextProps {
  readonly path: string;
  readonly editor: ReturnType<typeof useEditor>;
  readonly isForm: boolean;
}

/** The edited text: next to the stored one, by the fields of a role, or alone. */
const EditedText = ({ path, editor: { merge, text, setText }, isForm }: TextProps) => (
  <Suspense fallback={<Loading what="the editor" />}>
    {merge ? (
      <MergeText theirs={merge.theirs} mine={text} onChange={setText} />
    ) : isForm ? (
      <RoleForm text={text} onChange={setText} />
    ) : (
      <CodeText path={path} text={text} label={`Text of ${path}`} onChange={setText} />
    )}
  </Suspense>
);

/** Offers fields for the file of a role, if they can show all of it. */
const useForm = (path: string, text: string, isMerging: boolean) => {
  const [isRaw, setRaw] = useState(false);
  const isRole = roleOfPath(path) !== null && !isMerging;
  const unknown = isRole ? readRoleFile(text).unknown : null;
  const isForm = isRole && !isRaw && unknown === null;
  const control = isRole && (
    <>
      <Button aria-pressed={!isForm} disabled={unknown !== null} onClick={() => setRaw(!isRaw)}>
        Raw text
      </Button>
      {unknown !== null && <p className={ui.muted}>The form has no field for “{unknown.slice(0, 60)}”.</p>}
    </>
  );
  return { isForm, control };
};

/** Edits the text of a file. It is saved only if the file is still the one that was read. */
export const FileEditor = (props: EditorProps) => {
  const { entry, start, onEnd } = props;
  const editor = useEditor(props);
  const { act, text, conflict, merge, save } = editor;
  const { isForm, control } = useForm(entry.path, text, merge !== null);
  const isChanged = text !== start.text;
  const { leave, ask, stay } = useLeave(isChanged);
  const cancel = (): void => (isChanged ? ask(onEnd) : onEnd());
  const expect = merge?.digest ?? start.digest;
  const isNewer = entry.digest !== expect;
  return (
    <div className={css.editor}>
      <div className={css.editorBar}>
        <ActButton
          permission="files:write"
          look="primary"
          icon="save"
          isOff={act.isBusy || (!isChanged && !merge)}
          onClick={() => save(expect)}
        >
          Save
        </ActButton>
        <Button onClick={cancel}>Cancel</Button>
        {control}
        {isNewer && !conflict && (
          <p role="status" className={css.newer}>
            Version {entry.version} by {entry.changedBy ?? 'another writer'} was stored meanwhile. You choose
            when you save.
          </p>
        )}
      </div>
      {act.problem && !conflict && <ProblemBox problem={act.problem} />}
      <EditedText path={entry.path} editor={editor} isForm={isForm} />
      {conflict && <ConflictDialog editor={editor} conflict={conflict} takeTheirs={onEnd} />}
      {leave && (
        <Dialog title="Leave without saving?" onClose={stay}>
          <p>Your changes of this file are not saved.</p>
          <div className={ui.dialogFoot}>
            <Button onClick={stay}>Stay</Button>
            <Button
              look="danger"
              onClick={() => {
                setParams({ edit: null });
                leave();
              }}
            >
              Leave without saving
            </Button>
          </div>
        </Dialog>
      )}
    </div>
  );
};
