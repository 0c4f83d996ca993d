import type { ModelMessage } from '@antiphon/agent-domain';

/** What every vendor takes as the id of a tool call. */
const PORTABLE = /^[A-Za-z0-9_-]{1,40}$/;

/**
 * How a request names its tool calls: ids as given where every vendor takes them, else by their place, so that
 * a conversation can move from one provider to another (`fallback`) whatever ids the first one gave.
 */
export const portableIds = (messages: readonly ModelMessage[]): ((id: string) => string) => {
  const ids = messages.flatMap((message) =>
    message.role === 'assistant' ? message.toolCalls.map((call) => call.id) : [],
  );
  const taken = new Set(ids);
  const renamed = new Map<string, string>();
  let number = 0;
  for (const id of taken) {
    if (PORTABLE.test(id)) continue;
    let name: string;
    do name = `call_${(number += 1)}`;
    while (taken.has(name));
    renamed.set(id, name);
  }
  return (id) => renamed.get(id) ?? id;
};
