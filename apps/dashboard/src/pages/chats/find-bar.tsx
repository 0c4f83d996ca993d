import { useEffect, useMemo, useRef, useState } from 'react';
import { setParams } from '../../data/router.js';
import type { Turn } from '../../data/transcript.js';
import { partsOf } from '../../data/turn-parts.js';
import { useRead } from '../../data/use-read.js';
import { css as ui, IconButton } from '../../ui/ui.js';
import css from './chats.module.css';

/** Pause after which a typed text is searched, ms. */
const TYPING_MS = 200;

/** Returns the texts of a turn that a person reads. */
const textOf = (turn: Turn): string => {
  const answers = partsOf(turn).flatMap((part) => (part.kind === 'text' ? [part.text] : []));
  return [turn.message.isDeleted ? '' : turn.message.text, ...answers].join('\n').toLowerCase();
};

/** A search of a chat. The page keeps it while it reads another part of the chat. */
export interface Find {
  readonly text: string;
  /** Number of the match that is shown. */
  readonly at: number;
}

const NO_FIND: Find = { text: '', at: 0 };

/** Opens the search by Ctrl+F. A second press while it is open is the one of the browser. */
export const useFind = () => {
  const [isOpen, setOpen] = useState(false);
  const [find, setFind] = useState(NO_FIND);
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
  const close = (): void => {
    setOpen(false);
    setFind(NO_FIND);
  };
  return { isOpen, find, setFind, close };
};

interface FindBarProps {
  /** Session of the chat, which the server searches. */
  readonly sessionId: string;
  /** Turns that the chat has from its origins. */
  readonly inherited: readonly Turn[];
  readonly find: Find;
  readonly setFind: (find: Find) => void;
  readonly onClose: () => void;
}

interface Found {
  readonly turnId: string;
  readonly position: number;
}

/** Returns the turns that have a text: those of the origins, and all of the session. */
const useFound = (text: string, { sessionId, inherited }: Pick<FindBarProps, 'sessionId' | 'inherited'>) => {
  const [wanted, setWanted] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setWanted(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const request = { params: { id: sessionId }, query: { text: wanted } };
  const { data } = useRead('findTexts', request, {
    isOff: wanted === '',
    changesOn: ({ streamId }) => streamId === `session-${sessionId}`,
  });
  return useMemo(() => {
    if (wanted === '' || !data) return { found: [], total: null };
    const earlier = inherited
      .filter((turn) => textOf(turn).includes(wanted))
      .map(({ turnId, firstPosition }): Found => ({ turnId, position: firstPosition }));
    return { found: [...earlier, ...data.found], total: earlier.length + data.total };
  }, [wanted, data, inherited]);
};

/** Brings a turn into view. One that the page does not have is read around its position. */
const useShown = (match: Found | undefined): void => {
  const { turnId, position } = match ?? {};
  useEffect(() => {
    if (turnId === undefined || position === undefined) return;
    const shown = document.querySelector(`[data-turn="${CSS.escape(turnId)}"]`);
    if (!shown) return setParams({ from: position });
    shown.scrollIntoView({ block: 'center' });
    shown.setAttribute('data-found', '');
    return () => shown.removeAttribute('data-found');
  }, [turnId, position]);
};

/** Finds a text in the whole chat, and goes from one message to the next. */
export const FindBar = ({ find: { text, at }, setFind, onClose, ...chat }: FindBarProps) => {
  const wanted = text.trim().toLowerCase();
  const { found, total } = useFound(wanted, chat);
  const index = Math.min(at, Math.max(0, found.length - 1));
  useShown(found[index]);
  const go = (by: number): void => {
    if (found.length > 0) setFind({ text, at: (index + by + found.length) % found.length });
  };
  return (
    <div className={css.find} role="search" aria-label="Find in the chat">
      <input
        type="search"
        className={ui.input}
        aria-label="Find in the chat"
        autoFocus
        value={text}
        onChange={(event) => setFind({ text: event.target.value, at: 0 })}
        onKeyDown={(event) => {
          if (event.key === 'Escape') onClose();
          if (event.key === 'Enter') go(event.shiftKey ? -1 : 1);
        }}
      />
      <span role="status">
        {wanted === '' ? '' : total === null ? '…' : `${total === 0 ? 0 : index + 1} of ${total}`}
      </span>
      <IconButton icon="previous" label="Previous match" onClick={() => go(-1)} />
      <IconButton icon="next" label="Next match" onClick={() => go(1)} />
      <IconButton icon="close" label="Close the search" onClick={onClose} />
    </div>
  );
};
