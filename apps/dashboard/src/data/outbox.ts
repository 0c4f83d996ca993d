import { connection, client } from './gateway.js';
import { chatsWithUnsent, readUnsent, writeUnsent, type Draft, type Unsent } from './drafts.js';
import { identity } from './identity.js';
import { createStore, type Store } from './store.js';
import { toProblem, type Problem } from './use-read.js';

/** A message on its path to the log. */
export interface Outgoing extends Unsent {
  /** Reason of a refusal; null while it is sent, or held until there is a connection. */
  readonly problem: Problem | null;
}

/** Returns a key that no other request of this browser has. */
export const newKey = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');

const whenConnected = (): Promise<void> =>
  new Promise((resolve) => {
    const check = (): boolean => connection.get().state === 'connected';
    if (check()) return resolve();
    const stop = connection.subscribe(() => {
      if (!check()) return;
      stop();
      resolve();
    });
  });

/** Attaches the files of a message, and then appends it. A repeat has no further effect. */
const deliver = async (chat: string, { key, text, files }: Unsent): Promise<void> => {
  const params = { id: identity.get().workspace, chat };
  for (const [index, { path }] of files.entries())
    await client.http.sendChatCommand({
      ...{ params, idempotencyKey: `${key}-file-${index}` },
      body: { command: 'attach', path },
    });
  await client.http.sendChatCommand({ params, idempotencyKey: key, body: { content: text } });
};

/** A failure that says nothing about the message: the gateway was not reached, or has a pause. */
const isPassing = ({ status }: Problem): boolean => status === null || status === 0 || status === 503;

const PAUSE_MS = 1_000;

/**
 * Sends the messages of one chat, one after another. They are stored until they are facts, so that
 * a lost connection or a reload delays a message and neither loses nor repeats it.
 */
export class Outbox {
  readonly messages: Store<readonly Outgoing[]>;
  #isBusy = false;

  constructor(private readonly chat: string) {
    this.messages = createStore(readUnsent(chat).map((unsent) => ({ ...unsent, problem: null })));
    void this.#run();
  }

  add(draft: Draft, key = newKey()): void {
    const { text, files } = draft;
    this.#change((before) => [...before, { key, text, files, problem: null }]);
    void this.#run();
  }

  /** Removes a refused message, which the page gives back to the field. */
  remove(key: string): void {
    this.#change((before) => before.filter((message) => message.key !== key));
    void this.#run();
  }

  retry(key: string): void {
    this.#change((before) =>
      before.map((message) => (message.key === key ? { ...message, problem: null } : message)),
    );
    void this.#run();
  }

  #change(change: (before: readonly Outgoing[]) => readonly Outgoing[]): void {
    this.messages.update(change);
    writeUnsent(
      this.chat,
      this.messages.get().map(({ key, text, files }) => ({ key, text, files })),
    );
  }

  async #run(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      for (let next = this.messages.get()[0]; next && !next.problem; next = this.messages.get()[0]) {
        await whenConnected();
        await this.#send(next);
      }
    } finally {
      this.#isBusy = false;
    }
  }

  async #send(message: Outgoing): Promise<void> {
    const { key } = message;
    try {
      await deliver(this.chat, message);
      this.#change((before) => before.filter((other) => other.key !== key));
    } catch (error) {
      const problem = toProblem(error);
      if (isPassing(problem)) return new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      this.#change((before) => before.map((other) => (other.key === key ? { ...other, problem } : other)));
    }
  }
}

const known = new Map<string, Outbox>();

/** Returns the outbox of a chat, which continues when its page is left. */
export const outboxOf = (chat: string): Outbox => {
  const outbox = known.get(chat) ?? new Outbox(chat);
  known.set(chat, outbox);
  return outbox;
};

/** Continues what an earlier page of this browser has not sent. */
export const resumeOutboxes = (): void => {
  for (const chat of chatsWithUnsent()) outboxOf(chat);
};
