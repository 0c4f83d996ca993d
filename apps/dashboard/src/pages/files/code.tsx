import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search';
import { Compartment, EditorState } from '@codemirror/state';
import { EditorView, keymap } from '@codemirror/view';
import { useEffect, useRef } from 'react';
import { lineEndOf } from '../../data/file-content.js';
import { codeLook, loadLanguage } from './code-theme.js';
import css from './files.module.css';

interface CodeProps {
  readonly path: string;
  readonly text: string;
  readonly label: string;
  /** Called with the whole text after each change. Absent: the text is only read. */
  readonly onChange?: (text: string) => void;
  /** First and last line to select, from 1. */
  readonly lines?: readonly [number, number] | null;
}

const selectLines = (view: EditorView, [from, to]: readonly [number, number]): void => {
  const { doc } = view.state;
  const start = doc.line(Math.min(Math.max(1, from), doc.lines));
  const end = doc.line(Math.min(Math.max(from, to), doc.lines));
  view.dispatch({
    selection: { anchor: start.from, head: end.to },
    effects: EditorView.scrollIntoView(start.from, { y: 'center' }),
  });
};

/** Text of a file with numbered lines, to read or to edit. Line endings stay as they are. */
export const CodeText = ({ path, text, label, onChange, lines = null }: CodeProps) => {
  const place = useRef<HTMLDivElement>(null);
  const change = useRef(onChange);
  change.current = onChange;
  const isReadOnly = onChange === undefined;
  const first = useRef(text);
  // An editor keeps its text. Only a reader follows a new one.
  const shown = isReadOnly ? text : first.current;
  const range = lines?.join('-') ?? '';
  useEffect(() => {
    if (!place.current) return;
    const language = new Compartment();
    const view = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: shown,
        extensions: [
          codeLook(label),
          EditorState.lineSeparator.of(lineEndOf(shown)),
          EditorState.readOnly.of(isReadOnly),
          EditorView.contentAttributes.of(isReadOnly ? { tabindex: '0', 'aria-readonly': 'true' } : {}),
          EditorView.editable.of(!isReadOnly),
          ...[history(), highlightSelectionMatches(), language.of([])],
          keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap]),
          EditorView.updateListener.of(({ docChanged, state }) => {
            if (docChanged) change.current?.(state.sliceDoc());
          }),
        ],
      }),
    });
    let isGone = false;
    loadLanguage(path).then(
      (support) => support && !isGone && view.dispatch({ effects: language.reconfigure(support) }),
      () => undefined,
    );
    if (range !== '') {
      const [from = 1, to = from] = range.split('-').map(Number);
      selectLines(view, [from, to]);
    }
    if (!isReadOnly) view.focus();
    return () => {
      isGone = true;
      view.destroy();
    };
  }, [path, shown, label, isReadOnly, range]);
  return <div ref={place} className={css.code} />;
};
