import { randomUUID } from 'node:crypto';
import type { MockScript } from '@antiphon/testing/providers';

const callsOf = (count: number, ...more: readonly { readonly name: string; readonly input: unknown }[]) => ({
  tools: [...Array.from({ length: count }, (_, n) => ({ name: 'echo', input: { n } })), ...more].map(
    (call) => ({
      id: `call_${randomUUID()}`,
      ...call,
    }),
  ),
});

/** Calls 40 tools: one fails, and the last needs an approval. */
const callForty = (results: number) => {
  if (results === 0) return callsOf(20);
  if (results === 20) return callsOf(9, { name: 'no_such_tool', input: {} });
  if (results === 30) return callsOf(9, { name: 'calculator', input: { expression: '40 + 2' } });
  return { text: ['All forty are done.'] };
};

/** Holds an answer after its first words when it is asked to, and repeats the message otherwise. */
export const createChatModel =
  (released: Promise<void>): MockScript =>
  ({ user, toolResults }) => {
    if (user.includes('hold'))
      return {
        reply: { text: ['These are partial words. ', 'never'] },
        before: (piece) => (piece.includes('never') ? released : undefined),
      };
    if (user.includes('read them')) return { text: ['I have read them.'] };
    if (user.includes('call forty tools')) return callForty(toolResults.length);
    if (user.includes('write the file'))
      return toolResults.length > 0
        ? { text: ['It is written.'] }
        : {
            tools: [
              { id: `call_${randomUUID()}`, name: 'write', input: { path: 'notes.md', content: 'one' } },
            ],
          };
    return { text: ['You said: ', user.slice(-40)] };
  };

/** Quota of all versions of files of the workspace, bytes. */
export const MOST_BYTES = 800_000;

/** The calculator needs an approval, and a member of the team writes files. */
export const SETTINGS = `
[[agents.approvals]]
tool = "calculator"

[[agents]]
id = "writer"
workspace = "*"
name = "Writer"
provider = "openai"
model = "gpt-4o"
tools = ["write"]

[files]
max_file_bytes = 200000
max_bytes = ${MOST_BYTES}
`;
