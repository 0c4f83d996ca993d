// Serves the tool of the part `remote-tools`.
import { serveTools } from '@antiphon/client';

const schema = { type: 'object', properties: { text: { type: 'string' } } };
const tool = { description: 'Returns its text.', schema, idempotent: true, handler: ({ text }) => text };
const server = serveTools(
  { bench_remote: tool },
  { url: process.env.ANTIPHON_URL, key: process.env.ANTIPHON_KEY, concurrency: 64 },
);
await server.ready;
process.stdout.write('ready\n');
