// Prints every event of the log up to the first completed turn: node examples/client-events.ts
import { ClientError, createClient } from '@antiphon/client';

const { ANTIPHON_URL = 'http://127.0.0.1:7400', ANTIPHON_TOKEN } = process.env;
const client = createClient({ url: ANTIPHON_URL, token: ANTIPHON_TOKEN });

try {
  // `from` is a cursor in a real program: store `cursor` with what you did, and pass it next time.
  for await (const { event, cursor } of client.events({ from: 'start', filter: { category: 'session' } })) {
    console.log(`${event.position} ${event.type} (continue from ${cursor})`);
    if (event.type === 'TurnCompleted') break;
  }
} catch (error) {
  if (!(error instanceof ClientError)) throw error;
  console.error(`${error.code}: ${error.message}`, error.data);
  process.exitCode = 1;
} finally {
  client.close();
}
