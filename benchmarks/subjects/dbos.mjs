// DBOS Transact: a turn is a durable workflow on PostgreSQL, in the process of its caller. Its id
// is the session and the number of the turn, which makes a repeated request the same turn.
// The form `documented` has a step for each call of the model and of a tool, and for loading and
// saving messages. In `lean` the first model step loads the messages, and the last one saves them.
// `queue` is lean, through a queue with one turn at a time for each session. That is the order that
// Antiphon promises, and a direct start does not have it.
import { DBOS } from '@dbos-inc/dbos-sdk';
import pg from 'pg';
import { assertAnswer, createChatModel } from '../lib/chat-completions.mjs';
import { createMessages } from '../lib/dbos-messages.mjs';
import { driveTurns } from '../lib/drive-turns.mjs';

const QUEUE = 'turns';
/** Intervals of its polls, for its queue and for a result: its defaults of 1 s are not for a chat. */
const POLL_MS = 10;
/** Turns after a launch that are not measured. */
const QUEUE_WARM_UP = 3;

const callTools = async (message) => {
  const results = [];
  for (const { id } of message.tool_calls) {
    const content = await DBOS.runStep(async () => 'result', { name: 'tool' });
    results.push({ role: 'tool', tool_call_id: id, content });
  }
  return results;
};

const documented = (model, messages) => async (session, number, content) => {
  const added = [{ role: 'user', content }];
  const earlier = await DBOS.runStep(() => messages.load(session), { name: 'load' });
  for (;;) {
    const message = await DBOS.runStep(() => model.complete([...earlier, ...added]), { name: 'model' });
    added.push(message);
    if (message.tool_calls === undefined) break;
    added.push(...(await callTools(message)));
  }
  await DBOS.runStep(() => messages.save(session, number, added).then(() => null), { name: 'save' });
  return added;
};

const lean = (model, messages) => async (session, number, content) => {
  const added = [{ role: 'user', content }];
  let earlier;
  for (;;) {
    const step = async () => {
      // A step that did not run in this process, after a recovery, has loaded nothing here.
      earlier ??= await messages.load(session);
      const message = await model.complete([...earlier, ...added]);
      if (message.tool_calls === undefined) await messages.save(session, number, [...added, message]);
      return message;
    };
    const message = await DBOS.runStep(step, { name: 'model' });
    added.push(message);
    if (message.tool_calls === undefined) return added;
    added.push(...(await callTools(message)));
  }
};

const start = (workflow, form, { session, number, content }) => {
  const params = { workflowID: `${session}/${number}` };
  const queued = { queueName: QUEUE, enqueueOptions: { queuePartitionKey: session } };
  return DBOS.startWorkflow(
    workflow,
    form === 'queue' ? { ...params, ...queued } : params,
  )(...[session, number, content]);
};

export const open = async ({ providerUrl, databaseUrl, form }) => {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 32 });
  const messages = await createMessages(pool);
  const model = createChatModel(providerUrl);
  const isolated = { logLevel: 'error', tracingEnabled: false, enableOTLP: false };
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: databaseUrl, systemDatabasePoolSize: 32, ...isolated });
  const build = form === 'documented' ? documented : lean;
  const workflow = DBOS.registerWorkflow(build(model, messages), { name: 'turn' });
  const launch = async () => {
    await DBOS.launch();
    if (form === 'queue')
      await DBOS.registerQueue(QUEUE, { partitionConcurrency: 1, minPollingIntervalMs: POLL_MS });
  };
  if (form !== 'queue') await launch();
  const turn = async (request) => {
    const handle = await start(workflow, form, request);
    assertAnswer('DBOS', await handle.getResult({ pollingIntervalMs: POLL_MS }), request.tools);
  };
  // The polls of a queue would slow the other subjects, so it runs during its own turns only.
  const turnsOfQueue = async (params) => {
    await launch();
    await driveTurns(turn, { ...params, turns: QUEUE_WARM_UP, tag: `${params.tag}warm` });
    const result = await driveTurns(turn, params);
    await DBOS.shutdown();
    return result;
  };
  return {
    turns: form === 'queue' ? turnsOfQueue : (params) => driveTurns(turn, params),
    // Its stored rows prove that its turns were durable.
    stored: async () => (await pool.query('select count(*)::int as n from dbos.workflow_status')).rows[0].n,
    close: async () => {
      if (form !== 'queue') await DBOS.shutdown();
      model.close();
      await pool.end();
    },
  };
};
