// LangGraph.js: its prebuilt agent with the PostgreSQL checkpointer, as its documentation sets it
// up, in the same process as the caller. The tool is a local function; ours runs in a WebAssembly
// cell.
import { tool } from '@langchain/core/tools';
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { ChatOpenAICompletions } from '@langchain/openai';
import pg from 'pg';
import { z } from 'zod';
import { driveTurns } from '../lib/drive-turns.mjs';

/**
 * After a streamed answer the stock class estimates tokens with a table that it downloads, which
 * hangs without a network. An estimate that costs nothing is in the peer's favour.
 */
class Chat extends ChatOpenAICompletions {
  getNumTokens(content) {
    return Promise.resolve(Math.ceil(String(content).length / 4));
  }
  _getEstimatedTokenCountFromPrompt() {
    return Promise.resolve(100);
  }
  _getNumTokensFromGenerations() {
    return Promise.resolve(20);
  }
}

const echo = tool(async () => 'result', {
  name: 'echo',
  description: 'Answers its input.',
  schema: z.object({ q: z.string() }),
});

export const open = async ({ providerUrl, databaseUrl, durability }) => {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 32 });
  const checkpointSaver = new PostgresSaver(pool);
  await checkpointSaver.setup();
  const llm = new Chat({
    model: 'mock',
    apiKey: 'none',
    streaming: true,
    maxRetries: 0,
    configuration: { baseURL: `${providerUrl}/v1` },
  });
  const agent = createReactAgent({ llm, tools: [echo], checkpointSaver });
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
