// Vercel's AI SDK: `streamText` with its loop of steps. It stores no messages itself, so they are
// stored as its documentation shows: loaded before a turn and saved after it, in PostgreSQL.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { stepCountIs, streamText, tool } from 'ai';
import pg from 'pg';
import { z } from 'zod';
import { driveTurns } from '../lib/drive-turns.mjs';

const TABLE = `create table if not exists messages (session text, position integer, message jsonb not null,
  primary key (session, position))`;
const LOAD = 'select message from messages where session = $1 order by position';
const SAVE = `insert into messages select $1, $2 + n - 1, message
  from jsonb_array_elements($3::jsonb) with ordinality as given (message, n)`;

const tools = {
  echo: tool({
    description: 'Answers its input.',
    inputSchema: z.object({ q: z.string().optional() }),
    execute: async () => 'result',
  }),
};

export const open = async ({ providerUrl, databaseUrl }) => {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 32 });
  await pool.query(TABLE);
  const provider = createOpenAICompatible({ name: 'mock', baseURL: `${providerUrl}/v1`, apiKey: 'none' });
  const model = provider('mock');
  const turn = async ({ session, content, tools: expected }) => {
    const { rows } = await pool.query({ name: 'load', text: LOAD, values: [session] });
    const messages = [...rows.map(({ message }) => message), { role: 'user', content }];
    const result = streamText({ model, tools, messages, maxRetries: 0, stopWhen: stepCountIs(20) });
    const text = await result.text;
    const steps = await result.steps;
    const results = steps.flatMap(({ toolResults }) => toolResults).length;
    if (!text.includes('word0') || results !== expected)
      throw new Error(`the AI SDK did not answer: ${results} of ${expected} tools, "${text}"`);
    const added = [messages.at(-1), ...(await result.responseMessages)];
    await pool.query({ name: 'save', text: SAVE, values: [session, rows.length, JSON.stringify(added)] });
  };
  return {
    turns: (params) => driveTurns(turn, params),
    // Its stored rows prove that its turns were durable.
    stored: async () => (await pool.query('select count(*)::int as n from messages')).rows[0].n,
    close: () => pool.end(),
  };
};
