import { connect } from '@nats-io/transport-node';

/** Messages of one kind have subjects that differ only in these parts. */
const VARIABLE_PARTS = [
  [/^_INBOX\.([a-z]+)\..*$/, 'replies to $1'],
  [/^\$JS\.ACK\.([A-Z]+)\.([a-z-]+)\..*$/, '$JS.ACK.$1.$2'],
  [/^(evt|live|hint\.turn-end)\.([^.]+)\.(?:([a-z]+)\.)?.*?(\.[A-Z]\w+)?$/, '$1.$2.$3.…$4'],
  [/[0-9a-f]{8}-[0-9a-f-]{27}/g, '…'],
];
const kindOf = (subject) =>
  VARIABLE_PARTS.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), subject);

/**
 * Counts the messages that clients of NATS publish while `work` runs, by kind of subject, for each
 * of `units`. The server's own messages are not counted, because a subscriber does not see them.
 */
export const countMessages = async (stack, units, work) => {
  const { url, user, password } = stack.nats();
  const connection = await connect({ servers: url, user, pass: password, name: 'counter' });
  const counts = new Map();
  connection.subscribe('>', {
    callback: (_error, { subject }) => {
      const kind = kindOf(subject);
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    },
  });
  await connection.flush();
  await work();
  await connection.flush();
  await connection.close();
  return [...counts]
    .map(([subject, messages]) => ({ subject, messages: messages / units }))
    .toSorted((a, b) => b.messages - a.messages);
};
