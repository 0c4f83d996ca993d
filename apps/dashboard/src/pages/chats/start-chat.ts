import type { Draft } from '../../data/drafts.js';
import { nameOfText } from '../../data/chat-name.js';
import { client } from '../../data/gateway.js';
import { identity } from '../../data/identity.js';
import { toProblem } from '../../data/use-read.js';

const MAX_NAMES = 20;

/** Choice of who answers in a new chat. */
export type Speaker = { readonly agent: string } | { readonly role: string } | Record<string, never>;

/**
 * Creates a chat with its files and its first message, by one request. The key joins a repeat.
 * Returns the id of the chat.
 */
export const startChat = async (draft: Draft, speaker: Speaker, key: string): Promise<string> => {
  const name = nameOfText(draft.text);
  const params = { id: identity.get().workspace };
  const { files } = draft;
  for (let attempt = 1; ; attempt++) {
    const numbered = attempt === 1 ? name : `${name} ${attempt}`;
    const body = {
      ...speaker,
      ...(name === '' ? {} : { name: numbered }),
      ...(files.length === 0 ? {} : { attach: files.map(({ path }) => path) }),
      message: draft.text,
    };
    try {
      const { id } = await client.http.createChat({ params, body, idempotencyKey: `${key}-${attempt}` });
      return id;
    } catch (error) {
      if (toProblem(error).code !== 'CHAT.NAME_TAKEN' || attempt === MAX_NAMES) throw error;
    }
  }
};
