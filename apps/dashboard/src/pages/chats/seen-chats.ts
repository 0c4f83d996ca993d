import { createStore } from '../../data/store.js';

const NAME = 'antiphon.seen-chats';
const MAX = 500;

type Seen = Readonly<Record<string, number>>;

const read = (): Seen => {
  try {
    return (JSON.parse(localStorage.getItem(NAME) ?? '{}') ?? {}) as Seen;
  } catch {
    return {};
  }
};

/** Position up to which this browser has shown each chat. */
export const seenChats = createStore<Seen>(read());

/** Notes that a chat was shown up to a position of the log. */
export const markSeen = (chat: string, position: number): void => {
  const before = seenChats.get();
  if ((before[chat] ?? 0) >= position) return;
  const { [chat]: _, ...others } = before;
  const kept = Object.fromEntries([...Object.entries(others), [chat, position] as const].slice(-MAX));
  seenChats.set(kept);
  try {
    localStorage.setItem(NAME, JSON.stringify(kept));
  } catch {
    // The mark stays for this page.
  }
};
