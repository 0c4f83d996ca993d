import { createServer } from 'node:http';
import { once } from 'node:events';

const readBody = async (request) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString('utf8'));
};

/**
 * Serves turns over HTTP: `POST /turns` responds once `accept` has resolved, `GET /turns/<id>` with
 * the result of `wait`.
 */
export const serveTurns = async (port, { accept, wait }) => {
  const handle = async (request) => {
    if (request.method === 'POST') {
      await accept(await readBody(request));
      return {};
    }
    return wait(request.url.split('/').at(-1));
  };
  const server = createServer((request, response) => {
    handle(request).then(
      (result) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(result)),
      (error) => response.writeHead(500).end(String(error)),
    );
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  process.once('disconnect', () => process.exit(0));
  process.send('ready');
};
