import { useEffect, useState, type DragEvent } from 'react';
import { useStore } from '../../data/store.js';
import { hasEnded, type Upload, type Uploads } from '../../data/uploads.js';
import { countOf, formatBytes } from '../../ui/format.js';
import { Button, IconButton, Panel, State } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import css from './files.module.css';

const STATES = {
  waiting: ['waiting', 'waits'],
  sending: ['running', 'uploads'],
  done: ['completed', 'stored'],
  exists: ['warning', 'name in use'],
  failed: ['failed', 'failed'],
  cancelled: ['cancelled', 'cancelled'],
} as const;

const Row = ({ upload, uploads }: { readonly upload: Upload; readonly uploads: Uploads }) => {
  const { id, file, path, state, sent, problem } = upload;
  const [of, word] = STATES[state];
  return (
    <li className={css.upload}>
      <span className={css.uploadName}>
        <VisibleText text={path} />
      </span>
      <span className={css.uploadSize}>{formatBytes(file.size)}</span>
      {state === 'sending' ? (
        <progress
          max={Math.max(1, file.size)}
          value={Math.min(sent, file.size)}
          aria-label={`Upload of ${path}`}
        />
      ) : (
        <State of={of}>{word}</State>
      )}
      {problem !== null && <span className={css.uploadProblem}>{problem}</span>}
      {(state === 'sending' || state === 'waiting') && (
        <IconButton icon="close" label={`Cancel the upload of ${path}`} onClick={() => uploads.cancel(id)} />
      )}
      {state === 'failed' && <Button onClick={() => uploads.retry(id)}>Try again</Button>}
    </li>
  );
};

const ANNOUNCE_MS = 1_000;

/** Returns a text that changes once a second at most, for screen readers. */
const useAnnounced = (text: string): string => {
  const [said, say] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => say(text), ANNOUNCE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return said;
};

/** Most rows that the list shows: running and failed ones come first. */
const MAX_ROWS = 50;
const ORDER = ['exists', 'failed', 'sending', 'waiting', 'cancelled', 'done'];

/** Shows the uploads of this page, and asks once about names that are in use. */
export const UploadList = ({ uploads }: { readonly uploads: Uploads }) => {
  const all = useStore(uploads.all);
  const ended = all.filter(hasEnded).length;
  const done = all.filter(({ state }) => state === 'done').length;
  const failed = all.filter(({ state }) => state === 'failed').length;
  const clashes = all.filter(({ state }) => state === 'exists').length;
  const title = `${done} of ${countOf(all.length, 'upload')} stored${failed > 0 ? `, ${failed} failed` : ''}`;
  const announced = useAnnounced(title);
  if (all.length === 0) return null;
  const shown = all.toSorted((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state)).slice(0, MAX_ROWS);
  return (
    <div className={css.uploads}>
      <p role="status" className="visually-hidden">
        {announced}
      </p>
      <Panel
        title={title}
        actions={
          ended === all.length ? <Button onClick={() => uploads.clear()}>Close the list</Button> : undefined
        }
      >
        {clashes > 0 && (
          <div className={css.clash} role="alert">
            <p>
              {countOf(clashes, 'file')} {clashes === 1 ? 'has a name that is' : 'have names that are'} in
              use. Replacing keeps the old versions.
            </p>
            <Button look="primary" onClick={() => uploads.answerClashes('replace')}>
              Replace
            </Button>
            <Button onClick={() => uploads.answerClashes('skip')}>Leave them as they are</Button>
          </div>
        )}
        <ul>
          {shown.map((upload) => (
            <Row key={upload.id} upload={upload} uploads={uploads} />
          ))}
        </ul>
        {all.length > shown.length && (
          <p className={css.left}>{all.length - shown.length} more are not shown.</p>
        )}
      </Panel>
    </div>
  );
};

const hasFiles = (event: DragEvent): boolean => event.dataTransfer.types.includes('Files');

/** Makes an element a place for dropped files. The browser never opens one instead of the page. */
export const useDrop = (onFiles: (files: readonly File[]) => void, isOff: boolean) => {
  const [isOver, setOver] = useState(false);
  return {
    isOver,
    handlers: {
      onDragOver: (event: DragEvent) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setOver(!isOff);
      },
      onDragLeave: (event: DragEvent) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
      },
      onDrop: (event: DragEvent) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setOver(false);
        if (!isOff) onFiles([...event.dataTransfer.files]);
      },
    },
  };
};
