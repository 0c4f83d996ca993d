// The floor: the provider calls of a turn over plain node:http, streamed and parsed, and nothing
// else.
import http from 'node:http';
import { driveTurns } from '../lib/drive-turns.mjs';

const TOOLS = [
  {
    type: 'function',
    function: {
      name: 'echo',
      description: 'Answers its input.',
      parameters: { type: 'object', properties: {} },
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
    });
    request.on('error', reject);
    request.end(json);
  });

const readAnswer = (sse) => {
  const answer = { text: '', toolCalls: null };
  for (const line of sse.split('\n')) {
    if (!line.startsWith('data: {')) continue;
    const delta = JSON.parse(line.slice(6)).choices[0]?.delta;
    answer.text += delta?.content ?? '';
    answer.toolCalls = delta?.tool_calls ?? answer.toolCalls;
  }
  return answer;
};

export const open = async ({ providerUrl }) => {
  const agent = new http.Agent({ keepAlive: true });
  const url = `${providerUrl}/v1/chat/completions`;
  const histories = new Map();
  const turn = async ({ session, content }) => {
    const messages = histories.get(session) ?? [];
    histories.set(session, messages);
    messages.push({ role: 'user', content });
    for (;;) {
      const body = { model: 'mock', stream: true, messages, tools: TOOLS };
      const { text, toolCalls } = readAnswer(await post(agent, url, body));
      if (toolCalls === null) {
        if (!text.includes('word0')) throw new Error('the provider did not answer');
        messages.push({ role: 'assistant', content: text });
        return;
      }
      const calls = toolCalls.map(({ index: _index, ...call }) => call);
      messages.push({ role: 'assistant', content: null, tool_calls: calls });
      for (const { id } of calls) messages.push({ role: 'tool', tool_call_id: id, content: 'result' });
    }
  };
  return { turns: (params) => driveTurns(turn, params), close: () => agent.destroy() };
};
