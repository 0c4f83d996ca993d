// The provider call of the peers that bring no client of their own: plain node:http, streamed and
// parsed to the message that a history stores.
import http from 'node:http';

export const TOOLS = [
  {
    type: 'function',
    function: {
      name: 'echo',
      description: 'Answers its input.',
      parameters: { type: 'object', properties: { q: { type: 'string' } } },
    },
  },
];

const post = (agent, url, body) =>
  new Promise((resolve, reject) => {
    const json = JSON.stringify(body);
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) };
    const request = http.request(url, { method: 'POST', agent, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => (text += chunk));
      response.on('end', () => resolve(text));
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end(json);
  });

const readMessage = (sse) => {
  let content = '';
  let calls = null;
  for (const line of sse.split('\n')) {
    if (!line.startsWith('data: {')) continue;
    const delta = JSON.parse(line.slice(6)).choices[0]?.delta;
    content += delta?.content ?? '';
    calls = delta?.tool_calls ?? calls;
  }
  if (calls === null) return { role: 'assistant', content };
  return { role: 'assistant', content: null, tool_calls: calls.map(({ index: _index, ...call }) => call) };
};

/** Returns `complete(messages)`, which resolves to the next message of the assistant. */
export const createChatModel = (providerUrl, tools = TOOLS) => {
  const agent = new http.Agent({ keepAlive: true });
  const url = `${providerUrl}/v1/chat/completions`;
  return {
    complete: async (messages) =>
      readMessage(await post(agent, url, { model: 'mock', stream: true, messages, tools })),
    close: () => agent.destroy(),
  };
};

/** Throws if a turn did not end with the text of the mock provider after so many tool calls. */
export const assertAnswer = (who, messages, tools) => {
  const results = messages.filter(({ role }) => role === 'tool').length;
  const text = messages.at(-1).content ?? '';
  if (!text.includes('word0') || results !== tools)
    throw new Error(`${who} did not answer: ${results} of ${tools} tools, "${text}"`);
};
