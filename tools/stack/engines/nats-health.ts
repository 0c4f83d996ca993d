import { statfsSync } from 'node:fs';
import { createConnection } from 'node:net';

const ANSWER_MS = 3_000;
/** Free space below which a restart would meet the same full disk, bytes. */
const NEEDED_BYTES = 4 * 1024 * 1024;
const SUBJECT = '$SYS.REQ.SERVER.PING.HEALTHZ';
const INBOX = '_INBOX.antiphon-supervisor';

export interface SystemUser {
  readonly user: string;
  readonly password: string;
}

/** Returns the payload of the first message in the text of a connection, or null. */
export const payloadOf = (received: string): string | null => {
  const head = /^MSG \S+ \S+ +(?:\S+ +)?(\d+)\r\n/m.exec(received);
  if (head === null) return null;
  const start = head.index + head[0].length;
  const payload = received.slice(start, start + Number(head[1]));
  return payload.length === Number(head[1]) ? payload : null;
};

/**
 * Asks a server for its health, as the user of its system account. A few lines of its protocol are
 * enough, and the client library would cost the supervisor several MiB.
 */
const askHealth = (port: number, { user, password: pass }: SystemUser): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = createConnection({ host: '127.0.0.1', port, timeout: ANSWER_MS });
    let received = '';
    socket.setEncoding('latin1');
    socket.once('connect', () => {
      const options = JSON.stringify({ user, pass, verbose: false, pedantic: false, lang: 'supervisor' });
      socket.write(`CONNECT ${options}\r\nSUB ${INBOX} 1\r\nPUB ${SUBJECT} ${INBOX} 0\r\n\r\n`);
    });
    socket.on('data', (text: string) => {
      received += text;
      const payload = payloadOf(received);
      if (payload === null && !received.includes('-ERR')) return;
      socket.destroy();
      if (payload === null) reject(new Error(`NATS refused the question: ${received.slice(-200)}`));
      else resolve(payload);
    });
    socket.once('timeout', () => socket.destroy(new Error('NATS does not answer')));
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('NATS closed the connection')));
  });

/** Returns the write error of a stream in an answer about health, or null. */
export const writeErrorOf = (answer: string): string | null => {
  const { data } = JSON.parse(answer) as { data?: { error?: string } };
  return data?.error?.includes('write error') === true ? data.error : null;
};

const hasSpace = (folder: string): boolean => {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize >= NEEDED_BYTES;
};

/**
 * Rejects while the server does not answer, and while a stream refuses messages because of an
 * earlier write error. The server keeps that state until its end, also when the disk has space
 * again. On a disk that is full, a restart would change nothing.
 */
export const checkNatsHealth = async (port: number, user: SystemUser, storeDir: string): Promise<void> => {
  const error = writeErrorOf(await askHealth(port, user));
  if (error !== null && hasSpace(storeDir)) throw new Error(error);
};
