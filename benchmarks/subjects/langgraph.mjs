// LangGraph.js: an agent with the PostgreSQL checkpointer, as its documentation sets it up, in the
// same process as the caller. The agent is the prebuilt one of LangGraph, or with the builder
// `createAgent` that of LangChain, which replaces it. The tool is a local function; ours runs in a
// WebAssembly cell.
import { tool } from '@langchain/core/tools';
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { createAgent } from 'langchain';
import pg from 'pg';
import { z } from 'zod';
import { driveTurns } from '../lib/drive-turns.mjs';
import { createLangChainModel } from '../lib/langchain-model.mjs';

const echo = tool(async () => 'result', {
  name: 'echo',
  description: 'Answers its input.',
  schema: z.object({ q: z.string() }),
});

const builders = {
  createReactAgent: (model, tools, saver) => createReactAgent({ llm: model, tools, checkpointSaver: saver }),
  createAgent: (model, tools, saver) => createAgent({ model, tools, checkpointer: saver }),
};

export const open = async ({ providerUrl, databaseUrl, durability, builder = 'createReactAgent' }) => {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 32 });
  const checkpointSaver = new PostgresSaver(pool);
  await checkpointSaver.setup();
  const model = createLangChainModel(providerUrl);
  const agent = builders[builder](model, [echo], checkpointSaver);
  const turn = async ({ session, content }) => {
    const config = { configurable: { thread_id: session }, recursionLimit: 20 };
    const input = { messages: [{ role: 'user', content }] };
    const state = await agent.invoke(input, durability === undefined ? config : { ...config, durability });
    if (!String(state.messages.at(-1).content).includes('word0')) throw new Error('LangGraph did not answer');
  };
  return {
    turns: (params) => driveTurns(turn, params),
    // Its stored rows prove that its turns were durable.
    stored: async () => (await pool.query('select count(*)::int as n from checkpoints')).rows[0].n,
    close: () => pool.end(),
  };
};
