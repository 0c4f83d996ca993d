import { useState, type KeyboardEvent } from 'react';
import { useIdentity } from '../../data/identity.js';
import type { FileToSend } from '../../data/drafts.js';
import { navigate } from '../../data/router.js';
import { useRead } from '../../data/use-read.js';

/** Something that completes what a person types: a file, or a command. */
export interface Suggestion {
  readonly id: string;
  readonly label: string;
  readonly hint: string;
  readonly apply: () => void;
}

const MAX = 8;
const MAX_FILES = 1_000;

/** Returns the name after an `@` at the end of a text; null for none. */
export const mentionIn = (text: string): string | null => /(?:^|\s)@([^\s@]{0,200})$/.exec(text)?.[1] ?? null;

/** Returns the command that a whole text begins, in any case of its letters; null for none. */
export const commandIn = (text: string): string | null =>
  /^\/([a-z]{0,20}) ?$/i.exec(text)?.[1]?.toLowerCase() ?? null;

interface Options {
  readonly text: string;
  /** Place of the caret in the text. */
  readonly caret: number;
  readonly change: (text: string) => void;
  readonly attach: (file: FileToSend) => void;
  readonly openPicker: () => void;
}

const commandsOf = ({ change, openPicker }: Options): readonly Suggestion[] => {
  const command = (id: string, hint: string, run: () => void): Suggestion => ({
    ...{ id, label: `/${id}`, hint },
    apply: () => {
      change('');
      run();
    },
  });
  return [
    command('new', 'begin another chat', () => navigate('/chats/new')),
    command('attach', 'choose files', openPicker),
    command('role', 'choose who answers in a new chat', () => navigate('/chats/new')),
  ];
};

/** Reads the files of the workspace that a name matches, once a name is typed. */
const useFiles = (name: string | null): readonly FileToSend[] => {
  const { workspace } = useIdentity();
  const { data } = useRead(
    'listFiles',
    { params: { id: workspace }, query: { recursive: 'true', limit: MAX_FILES } },
    { isOff: name === null, hasPast: false },
  );
  if (name === null) return [];
  const wanted = name.toLowerCase();
  return (data?.entries ?? [])
    .filter(
      ({ kind, path, is_virtual: isVirtual }) =>
        kind === 'file' && !isVirtual && path.toLowerCase().includes(wanted),
    )
    .slice(0, MAX)
    .map(({ path, size }) => ({ path, size, name: path.slice(path.lastIndexOf('/') + 1) }));
};

/** Suggests files after `@`, and commands after `/`. */
export const useSuggestions = (options: Options) => {
  const { text, caret, change, attach } = options;
  const before = text.slice(0, caret);
  const name = mentionIn(before);
  const command = commandIn(text);
  const files = useFiles(name);
  const [choice, setChoice] = useState({ text, index: 0, isClosed: false });
  const current = choice.text === text ? choice : { text, index: 0, isClosed: false };
  const found: readonly Suggestion[] =
    command === null
      ? files.map((file) => ({
          ...{ id: file.path, label: file.path, hint: 'attach' },
          apply: () => {
            attach(file);
            change(before.slice(0, before.length - (name ?? '').length - 1) + file.path + text.slice(caret));
          },
        }))
      : commandsOf(options).filter(({ id }) => id.startsWith(command));
  const list = current.isClosed ? [] : found;
  const index = Math.min(current.index, list.length - 1);
  const move = (to: number): void =>
    setChoice({ text, index: (to + list.length) % list.length, isClosed: false });
  /** Returns true if the key was for the list. */
  const onKeyDown = ({ key }: KeyboardEvent): boolean => {
    if (list.length === 0) return false;
    if (key === 'ArrowDown') move(index + 1);
    else if (key === 'ArrowUp') move(index - 1);
    else if (key === 'Enter' || key === 'Tab') list[index]?.apply();
    else if (key === 'Escape') setChoice({ text, index, isClosed: true });
    else return false;
    return true;
  };
  return { list, index, onKeyDown };
};
