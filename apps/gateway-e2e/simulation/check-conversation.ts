import type { ModelMessage } from '@antiphon/agent-domain';
import type { World } from './world.js';

const MAY_FOLLOW: Record<ModelMessage['role'], readonly (ModelMessage['role'] | undefined)[]> = {
  user: [undefined, 'assistant'],
  assistant: ['user', 'tool'],
  tool: ['assistant'],
};

/** I7: sides alternate, and results follow their calls, all of them and nothing else. */
export const checkConversation = (world: World, messages: readonly ModelMessage[]): void => {
  messages.forEach((message, i) => {
    if (!MAY_FOLLOW[message.role].includes(messages[i - 1]?.role))
      world.violations.push(`I7: ${message.role} speaks after ${messages[i - 1]?.role ?? 'nobody'}`);
    const next = messages[i + 1];
    const calls = message.role === 'assistant' ? message.toolCalls.map(({ id }) => id) : [];
    const results = next?.role === 'tool' ? next.results.map(({ id }) => id) : [];
    if (calls.join() !== results.join())
      world.violations.push(`I7: calls ${calls.join()}, results ${results.join()}`);
  });
  if (messages.at(-1)?.role === 'assistant')
    world.violations.push('I7: nobody has the last word but the model');
};
