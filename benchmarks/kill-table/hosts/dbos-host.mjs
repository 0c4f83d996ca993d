// DBOS: a turn is a workflow with a step for each model call and each tool call. A restart of this
// process recovers its workflows by itself (`DBOS.launch`). DBOS has no declaration for a step that
// must not run twice: a step that did not finish runs again. No step is retried after an error,
// which is its default.
import { DBOS } from '@dbos-inc/dbos-sdk';
import { createChatModel } from '../../lib/chat-completions.mjs';
import { CHARGE_TOOLS, runCall } from './charge-tool.mjs';
import { serveTurns } from './serve-turns.mjs';

const { PROVIDER_URL, DATABASE_URL, PORT } = process.env;
/** Interval of the polls for a result, ms. The default of 1 s would add to the time of a resume. */
const RESULT_POLL_MS = 20;

const model = createChatModel(PROVIDER_URL, CHARGE_TOOLS);

const turn = DBOS.registerWorkflow(
  async (content) => {
    const messages = [{ role: 'user', content }];
    for (;;) {
      const message = await DBOS.runStep(() => model.complete(messages), { name: 'model' });
      messages.push(message);
      if (message.tool_calls === undefined) return message.content;
      for (const call of message.tool_calls)
        messages.push(await DBOS.runStep(() => runCall(call), { name: 'tool', retriesAllowed: false }));
    }
  },
  { name: 'turn' },
);

DBOS.setConfig({
  ...{ name: 'kill-table', applicationVersion: '1', systemDatabaseUrl: DATABASE_URL },
  ...{ logLevel: 'error', tracingEnabled: false, enableOTLP: false },
});
await DBOS.launch();
await serveTurns(Number(PORT), {
  accept: ({ id, content }) => DBOS.startWorkflow(turn, { workflowID: id })(content),
  wait: async (id) => ({
    text: await DBOS.retrieveWorkflow(id).getResult({ pollingIntervalMs: RESULT_POLL_MS }),
  }),
});
