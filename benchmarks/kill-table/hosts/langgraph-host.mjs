// LangChain's `createAgent` on LangGraph with its PostgreSQL checkpointer. LangGraph saves steps,
// and resumes a thread when it is invoked without an input. It does not know which threads a crash
// has left open, so the application does here. A table has each accepted turn, and a start resumes
// the open ones. This is more than its documentation asks for.
import { tool } from '@langchain/core/tools';
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres';
import { createAgent } from 'langchain';
import pg from 'pg';
import { z } from 'zod';
import { createLangChainModel } from '../../lib/langchain-model.mjs';
import { CHARGE, charge } from './charge-tool.mjs';
import { serveTurns } from './serve-turns.mjs';

const { PROVIDER_URL, DATABASE_URL, PORT, DURABILITY } = process.env;
const TABLE = 'create table if not exists turns (id text primary key, content text not null, answer text)';

const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 8 });
const checkpointer = new PostgresSaver(pool);
await checkpointer.setup();
await pool.query(TABLE);

const agent = createAgent({
  model: createLangChainModel(PROVIDER_URL),
  tools: [
    tool(({ url }) => charge(url), {
      ...{ name: CHARGE.name, description: CHARGE.description },
      schema: z.object({ url: z.string() }),
    }),
  ],
  checkpointer,
});

const running = new Map();

const isAnswer = (message) => message?.getType() === 'ai' && !message.tool_calls?.length;

/**
 * Begins a turn, or continues it from its last checkpoint. The list of next nodes does not say
 * whether a turn has ended. It is also empty if a node's writes are saved and its step is not.
 */
const runTurn = async (id, content) => {
  const config = { configurable: { thread_id: id }, recursionLimit: 20 };
  if (DURABILITY !== undefined) config.durability = DURABILITY;
  const isBegun = (await checkpointer.getTuple(config)) !== undefined;
  if (isBegun) await agent.graph.invoke(null, config);
  else await agent.invoke({ messages: [{ role: 'user', content }] }, config);
  const { values } = await agent.graph.getState(config);
  const last = values.messages?.at(-1);
  if (!isAnswer(last)) throw new Error(`turn ${id} ended without an answer`);
  await pool.query('update turns set answer = $2 where id = $1', [id, String(last.content)]);
  return String(last.content);
};

const begin = (id, content) => {
  if (!running.has(id)) running.set(id, runTurn(id, content));
  running.get(id).catch(() => undefined);
};

const { rows: open } = await pool.query('select id, content from turns where answer is null');
for (const { id, content } of open) begin(id, content);

await serveTurns(Number(PORT), {
  accept: async ({ id, content }) => {
    await pool.query('insert into turns values ($1, $2) on conflict do nothing', [id, content]);
    begin(id, content);
  },
  wait: async (id) => {
    if (running.has(id)) return { text: await running.get(id) };
    const { rows } = await pool.query('select answer from turns where id = $1', [id]);
    if (!rows[0]?.answer) throw new Error(`turn ${id} has no answer`);
    return { text: rows[0].answer };
  },
});
