// Mastra: its agent with its memory in PostgreSQL, as its documentation sets it up, in the same
// process as the caller. Recall by meaning needs an embedding model, so it is off.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { Memory } from '@mastra/memory';
import { PostgresStore } from '@mastra/pg';
import pg from 'pg';
import { z } from 'zod';
import { driveTurns } from '../lib/drive-turns.mjs';

const echo = createTool({
  id: 'echo',
  description: 'Answers its input.',
  inputSchema: z.object({ q: z.string().optional() }),
  outputSchema: z.string(),
  execute: async () => 'result',
});

export const open = async ({ providerUrl, databaseUrl }) => {
  const storage = new PostgresStore({ id: 'bench', connectionString: databaseUrl, max: 32 });
  await storage.init();
  const provider = createOpenAICompatible({ name: 'mock', baseURL: `${providerUrl}/v1`, apiKey: 'none' });
  const agent = new Agent({
    id: 'bench',
    name: 'bench',
    instructions: 'You are a helpful assistant.',
    model: provider('mock'),
    tools: { echo },
    memory: new Memory({ storage, options: { lastMessages: 40, semanticRecall: false } }),
  });
  const turn = async ({ session, content, tools: expected }) => {
    const memory = { thread: session, resource: 'bench' };
    const result = await agent.stream(content, { memory, maxSteps: 20 });
    const text = await result.text;
    const results = (await result.steps).flatMap(({ toolResults }) => toolResults).length;
    if (!text.includes('word0') || results !== expected)
      throw new Error(`Mastra did not answer: ${results} of ${expected} tools, "${text}"`);
  };
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  return {
    turns: (params) => driveTurns(turn, params),
    // Its stored rows prove that its turns were durable.
    stored: async () => (await pool.query('select count(*)::int as n from mastra_messages')).rows[0].n,
    close: async () => {
      await pool.end();
      await storage.close?.();
    },
  };
};
