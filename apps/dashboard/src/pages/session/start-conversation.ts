import { client } from '../../data/gateway.js';

/** Starts a session with an agent by its first message. Returns the id of the session. */
export const startConversation = async (agent: string, content: string): Promise<string> => {
  const peer = [...crypto.getRandomValues(new Uint8Array(8))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');
  const abort = new AbortController();
  const place = { channel: 'dashboard', account: 'web', peer, agent };
  const turn = client.chat({ ...place, content }, { signal: abort.signal });
  try {
    return (await turn.accepted).sessionId;
  } finally {
    abort.abort();
  }
};
