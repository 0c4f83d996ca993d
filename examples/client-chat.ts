// Sends a message and prints the answer while it arrives.
// Run it by: npx node examples/client-chat.ts "Hello there"
import { createClient } from '@antiphon/client';

const { ANTIPHON_URL = 'http://127.0.0.1:7400', ANTIPHON_TOKEN } = process.env;
const client = createClient({ url: ANTIPHON_URL, token: ANTIPHON_TOKEN });

const turn = client.chat(
  { channel: 'example', account: 'local', peer: 'alice', content: process.argv[2] ?? 'Hello there' },
  {
    // A tool call that waits for a person. This program refuses every one.
    onApproval: ({ approvalId }) =>
      void client.approvals.answer({ approvalId, decision: 'deny', reason: 'an example may not do this' }),
  },
);

for await (const frame of turn) {
  if (frame.event === 'text') process.stdout.write(frame.data);
  if (frame.event === 'blocked') process.stdout.write(`\n[waits: ${frame.data.message}]\n`);
  if (frame.event === 'restart') process.stdout.write('\n[the answer starts again]\n');
}

// The whole answer, without parts that a restart voided.
const answer = await turn.text();
const { agents } = await client.http.listAgents();
console.log(`\n${answer.length} characters; agents: ${agents.map(({ id }) => id).join(', ')}`);
client.close();
