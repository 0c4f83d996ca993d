import type { ModelMessage, ModelPrompt } from '@antiphon/providers-domain';

const HEADINGS = { user: 'User', assistant: 'Assistant', tool: 'Tool results' } as const;

const textOf = (message: ModelMessage): string => {
  switch (message.role) {
    case 'user':
      return [message.context, message.text].filter(Boolean).join('\n\n');
    case 'assistant':
      return [
        message.text,
        ...message.toolCalls.map(({ name, input }) => `[called ${name} ${JSON.stringify(input)}]`),
      ]
        .filter(Boolean)
        .join('\n');
    case 'tool':
      return message.results.map(({ name, content }) => `[${name}]\n${content}`).join('\n');
  }
};

const INTRODUCTION =
  'Continue this conversation as the assistant. Write only its next message, without a heading.';

/**
 * Renders a prompt as the text that a program reads: instructions, then the conversation. A single
 * message is sent as it is. Programs take no tools of their caller, so that none are listed.
 */
export const renderCliPrompt = ({ system, messages }: Pick<ModelPrompt, 'system' | 'messages'>): string => {
  const [first] = messages;
  const instructions = system.trim() === '' ? [] : [system];
  if (messages.length === 1 && first) return [...instructions, textOf(first)].join('\n\n');
  const turns = messages.map((message) => `### ${HEADINGS[message.role]}\n${textOf(message)}`);
  return [...instructions, INTRODUCTION, ...turns].join('\n\n');
};
