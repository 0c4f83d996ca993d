import { useEffect, useRef, useState } from 'react';
import type { Turn } from '../../data/transcript.js';
import { partsOf } from '../../data/turn-parts.js';
import { css as ui, IconButton } from '../../ui/ui.js';
import css from './chats.module.css';

/** Returns the texts of a turn that a person reads. */
const textOf = (turn: Turn): string => {
  const answers = partsOf(turn).flatMap((part) => (part.kind === 'text' ? [part.text] : []));
  return [turn.message.isDeleted ? '' : turn.message.text, ...answers].join('\n').toLowerCase();
};

/** Opens the search by Ctrl+F. A second press while it is open is the one of the browser. */
export const useFind = (): readonly [boolean, (isOpen: boolean) => void] => {
  const [isOpen, setOpen] = useState(false);
  const current = useRef(isOpen);
  current.current = isOpen;
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isFind = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'f' && !event.shiftKey;
      if (!isFind || current.current || document.querySelector('dialog[open]')) return;
      event.preventDefault();
      setOpen(true);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return [isOpen, setOpen];
};

interface FindBarProps {
  readonly turns: readonly Turn[];
  readonly onClose: () => void;
}

/** Finds a text in the messages that the page has, and goes from one to the next. */
export const FindBar = ({ turns, onClose }: FindBarProps) => {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const wanted = text.trim().toLowerCase();
  const found = wanted === '' ? [] : turns.filter((turn) => textOf(turn).includes(wanted));
  const index = Math.min(at, Math.max(0, found.length - 1));
  const turnId = found[index]?.turnId;
  useEffect(() => {
    if (turnId === undefined) return;
    const shown = document.querySelector(`[data-turn="${CSS.escape(turnId)}"]`);
    shown?.scrollIntoView({ block: 'center' });
    shown?.setAttribute('data-found', '');
    return () => shown?.removeAttribute('data-found');
  }, [turnId]);
  const go = (by: number): void => {
    if (found.length > 0) setAt((index + by + found.length) % found.length);
  };
  return (
    <div className={css.find} role="search" aria-label="Find in the chat">
      <input
        type="search"
        className={ui.input}
        aria-label="Find in the chat"
        autoFocus
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === 'Escape') onClose();
          if (event.key === 'Enter') go(event.shiftKey ? -1 : 1);
        }}
      />
      <span role="status">
        {wanted === '' ? '' : `${found.length === 0 ? 0 : index + 1} of ${found.length}`}
      </span>
      <IconButton icon="previous" label="Previous match" onClick={() => go(-1)} />
      <IconButton icon="next" label="Next match" onClick={() => go(1)} />
      <IconButton icon="close" label="Close the search" onClick={onClose} />
    </div>
  );
};
