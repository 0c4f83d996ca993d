// Forwards a TCP port to another container: FORWARD_FROM=8233 FORWARD_TO=temporal:8233.
import { createConnection, createServer } from 'node:net';

const [host, port] = (process.env.FORWARD_TO ?? '').split(':');
const server = createServer((client) => {
  const upstream = createConnection({ host, port: Number(port) });
  for (const [one, other] of [
    [client, upstream],
    [upstream, client],
  ]) {
    one.on('error', () => other.destroy());
    one.on('close', () => other.destroy());
    one.pipe(other);
  }
});
server.listen(Number(process.env.FORWARD_FROM), () => console.log(`forwarding to ${host}:${port}`));
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(0));
