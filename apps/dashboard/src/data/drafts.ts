import { identity } from './identity.js';
import { createStore } from './store.js';

/** A file of the workspace that a message attaches. */
export interface FileToSend {
  readonly path: string;
  readonly name: string;
  readonly size: number;
}

/** Text and files that a person has not sent yet. */
export interface Draft {
  readonly text: string;
  readonly files: readonly FileToSend[];
}

/** A message that was sent and has no fact yet. Its key joins repeated attempts. */
export interface Unsent extends Draft {
  readonly key: string;
}

/** Text that another part of the page offers for a new chat; empty for none. */
export const offeredText = createStore('');

const PREFIX = 'antiphon.chat.';
const EMPTY: Draft = { text: '', files: [] };

/** Another caller of the same browser has keys of its own. */
const keyOf = (kind: 'draft' | 'outbox', chat: string): string => {
  const { workspace, caller } = identity.get();
  return `${PREFIX}${kind} ${workspace} ${caller} ${chat}`;
};

const read = <T>(key: string): T | null => {
  try {
    return JSON.parse(localStorage.getItem(key) ?? 'null') as T | null;
  } catch {
    return null;
  }
};

/** Writes a value now, so that it survives the next moment. A full store keeps what it has. */
const write = (key: string, value: unknown): void => {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // The text stays in the page.
  }
};

export const readDraft = (chat: string): Draft => ({ ...EMPTY, ...read<Draft>(keyOf('draft', chat)) });

/** Stores a draft. An empty one is removed. */
export const writeDraft = (chat: string, draft: Draft): void => {
  const isEmpty = draft.text === '' && draft.files.length === 0;
  write(keyOf('draft', chat), isEmpty ? null : draft);
};

export const readUnsent = (chat: string): readonly Unsent[] => read<Unsent[]>(keyOf('outbox', chat)) ?? [];

/** Stores the messages of a chat that have no fact yet. */
export const writeUnsent = (chat: string, messages: readonly Unsent[]): void =>
  write(keyOf('outbox', chat), messages.length === 0 ? null : messages);

/** Returns the chats of this caller with messages that have no fact yet. */
export const chatsWithUnsent = (): readonly string[] => {
  const prefix = keyOf('outbox', '');
  return Object.keys(localStorage)
    .filter((key) => key.startsWith(prefix))
    .map((key) => key.slice(prefix.length));
};

/** Removes all drafts and unsent messages of this browser: at a sign-out. */
export const forgetDrafts = (): void => {
  for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX)) localStorage.removeItem(key);
};
