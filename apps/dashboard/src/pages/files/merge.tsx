import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { MergeView } from '@codemirror/merge';
import { EditorState } from '@codemirror/state';
import { EditorView, keymap } from '@codemirror/view';
import { useEffect, useRef } from 'react';
import { lineEndOf } from '../../data/file-content.js';
import { codeLook } from './code-theme.js';
import css from './files.module.css';

interface SidesProps {
  readonly before: Side;
  readonly after: Side;
  /** Called with the whole second text after each change. Absent: both texts are only read. */
  readonly onChange?: (text: string) => void;
}

interface Side {
  readonly text: string;
  readonly label: string;
}

/** Document and settings of one side of a comparison that takes no edits. */
const readOnly = ({ text, label }: Side) => ({
  doc: text,
  extensions: [
    codeLook(label),
    EditorState.readOnly.of(true),
    EditorView.contentAttributes.of({ tabindex: '0', 'aria-readonly': 'true' }),
    EditorView.editable.of(false),
  ],
});

/** Shows two texts side by side, without the lines in which they are equal. */
export const Sides = ({ before, after, onChange }: SidesProps) => {
  const place = useRef<HTMLDivElement>(null);
  const change = useRef(onChange);
  change.current = onChange;
  const isEdited = onChange !== undefined;
  const first = useRef({ before, after });
  // An editor keeps its texts. Only a reader follows new ones.
  const shown = isEdited ? first.current : { before, after };
  const key = isEdited ? '' : JSON.stringify(shown);
  const texts = useRef(shown);
  texts.current = shown;
  useEffect(() => {
    if (!place.current) return;
    const start = texts.current;
    const edited = {
      doc: start.after.text,
      extensions: [
        ...[codeLook(start.after.label), history()],
        EditorState.lineSeparator.of(lineEndOf(start.after.text)),
        keymap.of([...defaultKeymap, ...historyKeymap]),
        EditorView.updateListener.of(({ docChanged, state }) => {
          if (docChanged) change.current?.(state.sliceDoc());
        }),
      ],
    };
    const view = new MergeView({
      parent: place.current,
      a: readOnly(start.before),
      b: isEdited ? edited : readOnly(start.after),
      ...(isEdited && { revertControls: 'a-to-b' as const }),
      collapseUnchanged: { margin: 3 },
    });
    return () => view.destroy();
  }, [isEdited, key]);
  return <div ref={place} className={css.merge} />;
};

interface MergeProps {
  readonly theirs: string;
  readonly mine: string;
  readonly onChange: (text: string) => void;
}

/** Shows the stored text and the edited one side by side. The edited one can be changed. */
export const MergeText = ({ theirs, mine, onChange }: MergeProps) => (
  <Sides
    before={{ text: theirs, label: 'Text that is stored' }}
    after={{ text: mine, label: 'Text that you save' }}
    onChange={onChange}
  />
);
