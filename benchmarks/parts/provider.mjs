// Time that the providers' adapters add to the same call over plain node:http, in this process.
import http from 'node:http';
import { createModels } from '@antiphon/providers-features';
import { summarize } from '../lib/stats.mjs';

const TOOLS = [
  { name: 'echo', description: 'Answers its input.', inputSchema: { type: 'object', properties: {} } },
];

const bareCall = (agent, url, json) =>
  new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) };
    const request = http.request(url, { method: 'POST', agent, headers }, (response) => {
      let size = 0;
      response.on('data', (chunk) => (size += chunk.length));
      response.on('end', () => resolve(size));
    });
    request.on('error', reject);
    request.end(json);
  });

const BARE_BODY = {
  anthropic: {
    model: 'mock',
    max_tokens: 100,
    messages: [{ role: 'user', content: 'hello' }],
    tools: [
      { name: 'echo', description: 'Answers its input.', input_schema: { type: 'object', properties: {} } },
    ],
    stream: true,
  },
  openai: {
    model: 'mock',
    max_completion_tokens: 100,
    messages: [{ role: 'user', content: 'hello' }],
    tools: [
      {
        type: 'function',
        function: {
          name: 'echo',
          description: 'Answers its input.',
          parameters: { type: 'object', properties: {} },
        },
      },
    ],
    stream: true,
    stream_options: { include_usage: true },
  },
};

const callers = (providerUrl) => {
  const agent = new http.Agent({ keepAlive: true });
  const providers = [
    { name: 'anthropic', kind: 'anthropic', baseUrl: providerUrl, apiKeyEnv: 'KEY' },
    { name: 'openai', kind: 'openai', baseUrl: `${providerUrl}/v1`, apiKeyEnv: 'KEY' },
  ];
  const models = createModels({ source: null, providers }, { KEY: 'bench-key' });
  const sink = { onText: () => undefined, onThought: () => undefined };
  const ours = (provider) => () =>
    models.complete(
      {
        provider,
        model: 'mock',
        system: '',
        messages: [{ role: 'user', text: 'hello' }],
        tools: TOOLS,
        maxOutputTokens: 100,
        signal: new AbortController().signal,
        streaming: true,
      },
      sink,
    );
  const bare = (format, path) => () =>
    bareCall(agent, `${providerUrl}${path}`, JSON.stringify(BARE_BODY[format]));
  return {
    list: [
      { name: 'anthropic', bare: bare('anthropic', '/v1/messages'), ours: ours('anthropic') },
      { name: 'openai', bare: bare('openai', '/v1/chat/completions'), ours: ours('openai') },
    ],
    close: () => {
      agent.destroy();
      models.close();
    },
  };
};

const timed = async (call) => {
  const from = performance.now();
  await call();
  return performance.now() - from;
};

/** Milliseconds a streamed call of twenty deltas, ours and bare in turn, one after another. */
export const benchProvider = async ({ providerUrl, quick }) => {
  const { list, close } = callers(providerUrl);
  const calls = quick ? 50 : 500;
  const rows = [];
  for (const { name, bare, ours } of list) {
    const samples = { bare: [], ours: [] };
    for (let i = -200; i < calls; i += 1) {
      const [b, o] =
        i % 2 === 0
          ? [await timed(bare), await timed(ours)]
          : [await timed(ours), await timed(bare)].reverse();
      if (i < 0) continue;
      samples.bare.push(b);
      samples.ours.push(o);
    }
    rows.push({ format: name, bare: summarize(samples.bare), ours: summarize(samples.ours) });
  }
  close();
  return rows;
};
