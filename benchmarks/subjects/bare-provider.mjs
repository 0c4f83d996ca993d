// The floor: the provider calls of a turn over plain node:http, streamed and parsed, and nothing
// else.
import { assertAnswer, createChatModel } from '../lib/chat-completions.mjs';
import { driveTurns } from '../lib/drive-turns.mjs';

export const open = async ({ providerUrl }) => {
  const model = createChatModel(providerUrl);
  const histories = new Map();
  const turn = async ({ session, content, tools }) => {
    const messages = histories.get(session) ?? [];
    histories.set(session, messages);
    const from = messages.length;
    messages.push({ role: 'user', content });
    for (;;) {
      const message = await model.complete(messages);
      messages.push(message);
      if (message.tool_calls === undefined) break;
      for (const { id } of message.tool_calls)
        messages.push({ role: 'tool', tool_call_id: id, content: 'result' });
    }
    assertAnswer('the provider', messages.slice(from), tools);
  };
  return { turns: (params) => driveTurns(turn, params), close: () => model.close() };
};
