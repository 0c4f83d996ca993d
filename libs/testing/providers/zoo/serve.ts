import type { ServerResponse } from 'node:http';
import { startHttpProvider, type HttpProvider, type SeenRequest } from '../http-provider.js';
import type { ZooResponse } from './behaviours.js';

const send = async (answer: ZooResponse, response: ServerResponse): Promise<void> => {
  if (!('pieces' in answer)) {
    const { status, body, headers = {} } = answer;
    const isText = typeof body === 'string';
    response.writeHead(status, { 'content-type': isText ? 'text/html' : 'application/json', ...headers });
    return void response.end(isText ? body : JSON.stringify(body));
  }
  response.writeHead(200, { 'content-type': answer.type ?? 'text/event-stream; charset=utf-8' });
  response.flushHeaders();
  for (const piece of answer.pieces) response.write(piece);
  if (answer.cut !== true) return void response.end();
  // The connection breaks only after the client has these pieces.
  await new Promise((resolve) => response.write('', resolve));
  setImmediate(() => response.socket?.resetAndDestroy());
};

/** Serves the responses that `answer` chooses, one for each request. */
export const startZoo = (answer: (seen: SeenRequest) => ZooResponse): Promise<HttpProvider> =>
  startHttpProvider((seen, response) => {
    send(answer(seen), response).catch(() => response.destroy());
  });
