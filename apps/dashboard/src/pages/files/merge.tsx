import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { MergeView } from '@codemirror/merge';
import { EditorState } from '@codemirror/state';
import { EditorView, keymap } from '@codemirror/view';
import { useEffect, useRef } from 'react';
import { lineEndOf } from '../../data/file-content.js';
import { codeLook } from './code-theme.js';
import css from './files.module.css';

interface MergeProps {
  readonly theirs: string;
  readonly mine: string;
  readonly onChange: (text: string) => void;
}

/** Shows the stored text and the edited one side by side. The edited one can be changed. */
export const MergeText = ({ theirs, mine, onChange }: MergeProps) => {
  const place = useRef<HTMLDivElement>(null);
  const change = useRef(onChange);
  change.current = onChange;
  const first = useRef({ theirs, mine });
  useEffect(() => {
    if (!place.current) return;
    const start = first.current;
    const view = new MergeView({
      parent: place.current,
      a: {
        doc: start.theirs,
        extensions: [codeLook('Text that is stored'), EditorState.readOnly.of(true)],
      },
      b: {
        doc: start.mine,
        extensions: [
          ...[codeLook('Text that you save'), history()],
          EditorState.lineSeparator.of(lineEndOf(start.mine)),
          keymap.of([...defaultKeymap, ...historyKeymap]),
          EditorView.updateListener.of(({ docChanged, state }) => {
            if (docChanged) change.current(state.sliceDoc());
          }),
        ],
      },
      revertControls: 'a-to-b',
      collapseUnchanged: { margin: 3 },
    });
    return () => view.destroy();
  }, []);
  return <div ref={place} className={css.merge} />;
};
