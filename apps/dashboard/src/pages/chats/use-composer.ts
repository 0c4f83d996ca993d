import { useEffect, useLayoutEffect, useRef, useState, type ClipboardEvent, type KeyboardEvent } from 'react';
import { useRefusal } from '../../data/act.js';
import { readDraft, writeDraft, type Draft } from '../../data/drafts.js';
import { readyFiles, useAttachments, type Attachment } from './use-attachments.js';
import { useSuggestions } from './use-suggestions.js';

/** A longer pasted text becomes a file. */
const LONG_PASTE = 4_000;
const SECOND_ESCAPE_MS = 1_500;

/** Returns true where Enter sends: on a touch screen it breaks the line. */
const hasFinePointer = (): boolean => !matchMedia('(pointer: coarse)').matches;

/** Changes the field from outside: to give a text back, or to set the focus. */
export interface ComposerHandle {
  readonly give: (draft: Draft) => void;
  readonly focus: () => void;
}

export interface ComposerOptions {
  /** Chat of the draft; `new` for a chat that does not exist yet. */
  readonly chat: string;
  readonly onSend: (draft: Draft) => void;
  readonly handle?: { current: ComposerHandle | null };
  /** True while nothing can be sent. */
  readonly isOff?: boolean;
  /** Stops the running turn; absent without one. */
  readonly onStop?: (() => void) | undefined;
  /** Edits the last message: the key ↑ in an empty field. */
  readonly onEditLast?: (() => void) | undefined;
}

/** Joins a text that is given back with what the field has. */
const joinTexts = (before: string, more: string): string =>
  before.trim() === '' ? more : `${more}\n${before}`;

/** Keeps the text and the files of a composer, and stores them as they change. */
const useDraft = (chat: string) => {
  const [initial] = useState(() => readDraft(chat));
  const [text, setText] = useState(initial.text);
  const latest = useRef(text);
  const attachments = useAttachments(initial.files, (files) =>
    writeDraft(chat, { text: latest.current, files }),
  );
  const change = (next: string): void => {
    latest.current = next;
    setText(next);
    writeDraft(chat, { text: next, files: readyFiles(attachments.list) });
  };
  return { text, latest, attachments, change };
};

const two = (value: number): string => String(value).padStart(2, '0');

const pastedName = (now = new Date()): string =>
  `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}-pasted.txt`;

/** Sets the height of a field to that of its text, where the style sheet cannot. */
const useGrowing = (text: string) => {
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    const area = field.current;
    if (!area || CSS.supports('field-sizing', 'content')) return;
    area.rows = Math.min(16, Math.max(2, text.split('\n').length));
  }, [text]);
  return field;
};

/** Takes pasted files, and a long text as a file. Other texts go to the field. */
const pasteInto =
  (add: (files: readonly File[], pasted?: string) => void) =>
  (event: ClipboardEvent): void => {
    const files = [...event.clipboardData.files];
    const text = event.clipboardData.getData('text/plain');
    if (files.length === 0 && text.length <= LONG_PASTE) return;
    event.preventDefault();
    if (files.length > 0) add(files);
    else add([new File([text], pastedName(), { type: 'text/plain' })], text);
  };

interface Keys extends Pick<ComposerOptions, 'onStop' | 'onEditLast'> {
  readonly text: string;
  readonly send: () => void;
  /** Handles a key for the list of suggestions; returns true if it was for the list. */
  readonly suggest: (event: KeyboardEvent) => boolean;
}

/** Handles the keys of the field: Enter sends, ↑ edits the last message, Escape twice stops. */
const useFieldKeys = ({ text, send, suggest, onStop, onEditLast }: Keys) => {
  const escapedAt = useRef(Number.NEGATIVE_INFINITY);
  const escape = (): void => {
    const isSecond = performance.now() - escapedAt.current < SECOND_ESCAPE_MS;
    escapedAt.current = isSecond ? Number.NEGATIVE_INFINITY : performance.now();
    if (isSecond) onStop?.();
  };
  return (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing) return;
    if (suggest(event)) return event.preventDefault();
    const { key, shiftKey, ctrlKey, metaKey } = event;
    const sends = key === 'Enter' && (ctrlKey || metaKey || (!shiftKey && hasFinePointer()));
    const act = sends ? send : key === 'ArrowUp' && text === '' ? onEditLast : undefined;
    if (act) {
      event.preventDefault();
      return act();
    }
    if (key === 'Escape') escape();
  };
};

const useHandle = (handle: ComposerOptions['handle'], current: ComposerHandle): void =>
  useEffect(() => {
    if (!handle) return;
    handle.current = current;
    return () => void (handle.current = null);
  });

/** Keeps what a composer has, and acts on it. */
export const useComposer = (options: ComposerOptions) => {
  const { chat, onSend, handle, isOff = false, onStop, onEditLast } = options;
  const refusal = useRefusal('sessions:write');
  const { text, latest, attachments, change } = useDraft(chat);
  const field = useGrowing(text);
  const { list } = attachments;
  const isHeld = list.some(({ state }) => state !== 'ready');
  const canSend = text.trim() !== '' && !isHeld && !isOff && refusal === null;
  const focus = (): void => field.current?.focus();
  const send = (): void => {
    if (!canSend) return;
    const draft: Draft = { text, files: readyFiles(list) };
    // The stored draft is gone in the same tick: a late write would bring it back.
    attachments.clear();
    change('');
    onSend(draft);
    focus();
  };
  const give = (draft: Draft): void => {
    change(joinTexts(latest.current, draft.text));
    for (const file of draft.files) attachments.addPath(file);
    focus();
  };
  const undo = ({ id, pasted }: Attachment): void => {
    attachments.remove(id);
    change(text + (pasted ?? ''));
    focus();
  };
  useHandle(handle, { give, focus });
  const picker = useRef<HTMLInputElement>(null);
  const suggestions = useSuggestions({
    ...{ text, change, caret: field.current?.selectionStart ?? text.length },
    attach: attachments.addPath,
    openPicker: () => picker.current?.click(),
  });
  const onKeyDown = useFieldKeys({ text, send, suggest: suggestions.onKeyDown, onStop, onEditLast });
  const onPaste = pasteInto(attachments.add);
  return {
    ...{ text, change, attachments, field, picker, suggestions, canSend, refusal },
    ...{ send, undo, focus, onKeyDown, onPaste },
  };
};
