import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parseConfig } from '@antiphon/config';
import type { ModelAnswer, ModelFailure, ModelRequest } from '@antiphon/providers-domain';
import type { HttpProvider } from '@antiphon/testing/providers';
import {
  BEHAVIOURS,
  startZoo,
  ZOO,
  type Behaviour,
  type ZooOutcome,
  type ZooResponse,
  type ZooServer,
} from '@antiphon/testing/zoo';
import { createModels, type Models } from './create-models.js';

const MATRIX = fileURLToPath(new URL('../../../../docs/provider-matrix.md', import.meta.url));
const KEY = 'sk-zoo-0123456789abcdef';
const ENV = { ZOO_API_KEY: KEY };

const CONTEXT = { source: null, folder: '/', homeDir: '/', env: ENV, requireKeys: true };

/** Response to the next request. */
let next: ZooResponse;
let provider: HttpProvider;
let models: Models;

beforeAll(async () => {
  provider = await startZoo(() => next);
  const sections = ZOO.map(
    ({ kind, path }, index) =>
      `[[providers]]\nname = "s${index}"\nkind = "${kind}"\nbase_url = "${provider.url}/s${index}${path}"\napi_key_env = "ZOO_API_KEY"\n`,
  );
  models = createModels(parseConfig(sections.join('\n'), CONTEXT), ENV);
});
afterAll(async () => {
  models?.close();
  await provider?.close();
});

const requestTo = (server: ZooServer, streaming: boolean): ModelRequest => ({
  ...{
    provider: `s${ZOO.indexOf(server)}`,
    model: server.model,
    system: 'Be brief.',
    maxOutputTokens: 1_000,
    streaming,
  },
  messages: [{ role: 'user', text: 'When is low tide?' }],
  tools: [
    { name: 'calculator', description: 'Computes.', inputSchema: { type: 'object' } },
    { name: 'echo', description: 'Returns its input.', inputSchema: { type: 'object' } },
  ],
  signal: new AbortController().signal,
});

const outcomeOf = async (server: ZooServer, { whole }: Behaviour): Promise<ZooOutcome> => {
  const said = { text: '', thought: '' };
  const sink = {
    onText: (delta: string) => void (said.text += delta),
    onThought: (delta: string) => void (said.thought += delta),
  };
  try {
    const answer: ModelAnswer = await models.complete(requestTo(server, whole !== true), sink);
    const { text, thought, toolCalls, finishReason: finish, usage } = answer;
    if (whole !== true && said.text !== text) throw new Error('the pieces are not the text');
    const calls = toolCalls.map(({ name, input, problem }) => ({
      name,
      input,
      ...(problem ? { problem } : {}),
    }));
    const counts = usage && { inputTokens: usage.inputTokens, outputTokens: usage.outputTokens };
    return { failed: false, text, thought, calls, finish, usage: counts };
  } catch (error) {
    const { message, refused, retryable, dispatched } = error as ModelFailure;
    return { ...said, failed: true, calls: [], message, refused: refused === true, retryable, dispatched };
  }
};

const CELLS = { held: 'held', refused: 'refused clearly', none: '–' } as const;
const cells = new Map<string, string>();

describe.each(ZOO)('$name', (server) => {
  it.each(BEHAVIOURS.map((behaviour) => [behaviour.name, behaviour] as const))(
    '%s',
    async (name, behaviour) => {
      const response = behaviour.respond(server);
      if (response) {
        next = response;
        const outcome = await outcomeOf(server, behaviour);
        expect(behaviour.problem(outcome, server)).toBeUndefined();
      }
      cells.set(`${server.name}/${name}`, response ? CELLS[behaviour.as] : CELLS.none);
    },
  );
});

it('has at least 14 servers and 40 behaviours, each server with a public source', () => {
  expect(ZOO.length).toBeGreaterThanOrEqual(14);
  expect(BEHAVIOURS.length).toBeGreaterThanOrEqual(40);
  for (const { sources } of ZOO)
    expect(sources).toEqual(expect.arrayContaining([expect.stringMatching(/^https:/)]));
});

it('equals the matrix in docs/provider-matrix.md', () => {
  const row = (first: string, rest: readonly string[]) => `| ${[first, ...rest].join(' | ')} |`;
  const names = ZOO.map(({ name }) => name);
  const table = [
    row('', names),
    row(
      '---',
      names.map(() => '---'),
    ),
    ...BEHAVIOURS.map(({ name }) =>
      row(
        name,
        names.map((server) => cells.get(`${server}/${name}`) ?? 'broken'),
      ),
    ),
  ].join('\n');
  const [head = '', , tail = ''] = readFileSync(MATRIX, 'utf8').split(/<!-- (?:begin|end) of the matrix -->/);
  const text = `${head}<!-- begin of the matrix -->\n\n<!-- prettier-ignore -->\n${table}\n\n<!-- end of the matrix -->${tail}`;
  if (process.env['ANTIPHON_UPDATE_MATRIX'] === '1') writeFileSync(MATRIX, text);
  if (process.env['ANTIPHON_PRINT_MATRIX'] === '1') process.stdout.write(`${table}\n`);
  expect(readFileSync(MATRIX, 'utf8')).toBe(text);
});
