import { describe, expect, it } from '@jest/globals';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import * as agent from '../agent/index.js';
import * as gateway from '../gateway/index.js';
import * as keys from '../keys/index.js';
import * as memory from '../memory/index.js';
import * as metering from '../metering/index.js';
import * as sandbox from '../sandbox/index.js';
import { faultsOfGolden } from './testing/golden-payloads.js';
import type { GoldenPayload } from './testing/golden-payloads.js';
import { EVENT_CONTRACTS, UPCASTERS, currentFormOf, upcast } from './index.js';
import type { EventContract } from './index.js';

const FOLDER = join(import.meta.dirname, 'golden');

const readGolden = (): GoldenPayload[] =>
  readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.json'))
    .map((file) => ({ ...(JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as GoldenPayload), file }));

/** Zod objects among a module's exports that have the form of an event. */
const eventTypesOf = (module: object): string[] =>
  Object.values(module).flatMap((value: unknown) => {
    const shape = value instanceof z.ZodObject ? (value.shape as Record<string, unknown>) : {};
    const { type, schemaVersion } = shape;
    return type instanceof z.ZodLiteral && schemaVersion instanceof z.ZodLiteral ? [String(type.value)] : [];
  });

describe('golden payloads', () => {
  it('cover every event type in every schema version, and all can be read in full', () => {
    // For a new type or version run `npm run build && npm run golden:events`, which drafts
    // libs/contracts/events/golden/<category>/<Type>.v<version>.json. A payload that cannot be read
    // means that the change breaks stored events. Raise schemaVersion and add an upcaster.
    expect(faultsOfGolden(EVENT_CONTRACTS, UPCASTERS, readGolden())).toEqual([]);
  });

  it('cover every exported event type', () => {
    const exported = [agent, gateway, keys, memory, metering, sandbox].flatMap(eventTypesOf);
    expect(exported.length).toBeGreaterThan(30);
    expect(exported.filter((type) => currentFormOf(type) === undefined)).toEqual([]);
  });

  it('are stored under the name of their type and version', () => {
    for (const { file, type, schemaVersion } of readGolden()) {
      const contract = EVENT_CONTRACTS.find((one) => one.type === type);
      expect(file).toMatch(
        new RegExp(`^${contract?.category}/${type}\\.v${schemaVersion}(\\.[a-z-]+)?\\.json$`),
      );
    }
  });

  it('have the current schema version after upcasting', () => {
    for (const payload of readGolden())
      expect(upcast(payload).schemaVersion).toBe(currentFormOf(payload.type));
  });
});

describe('readers of events', () => {
  const LIBS = join(import.meta.dirname, '../..');
  const names = [
    ...EVENT_CONTRACTS.map(({ type }) => type),
    ...['Session', 'Run', 'Workflow', 'Budget', 'Key', 'Workspace'].map((of) => `${of}Event`),
  ];
  const PARSES = new RegExp(String.raw`\b(${names.join('|')})(\.shape\.data)?\.(safeParse|parse)\(`);
  const sources = readdirSync(LIBS, { recursive: true, encoding: 'utf8' }).filter(
    (file) => /\/features\/.*\.ts$/.test(file) && !/\.spec\.ts$|\/(dist|node_modules|testing)\//.test(file),
  );

  it('upcast content before they parse it', () => {
    const parsing = sources
      .map((file) => ({ file, text: readFileSync(join(LIBS, file), 'utf8') }))
      .filter(({ text }) => PARSES.test(text));
    expect(parsing.length).toBeGreaterThanOrEqual(5);
    expect(parsing.filter(({ text }) => !text.includes('upcast(')).map(({ file }) => file)).toEqual([]);
  });
});

describe('faultsOfGolden', () => {
  const schema = z.object({
    type: z.literal('Priced'),
    schemaVersion: z.literal(2),
    data: z.object({ microUsd: z.int(), note: z.string().optional() }),
  });
  const priced: EventContract = {
    category: 'budget',
    type: 'Priced',
    schemaVersion: 2,
    schema,
    fields: ['microUsd', 'note'],
  };
  const up = {
    type: 'Priced',
    from: 1,
    up: ({ cents }: { cents?: unknown }) => ({ microUsd: Number(cents) * 10_000 }),
  };
  const old = { file: 'budget/Priced.v1.json', type: 'Priced', schemaVersion: 1, data: { cents: 3 } };
  const full = {
    file: 'budget/Priced.v2.json',
    type: 'Priced',
    schemaVersion: 2,
    data: { microUsd: 3, note: 'x' },
  };
  const faults = (golden: GoldenPayload[], upcasters = [up]) => faultsOfGolden([priced], upcasters, golden);

  it('returns nothing if each version has a valid payload', () => expect(faults([old, full])).toEqual([]));

  it('reports a version without a payload', () => {
    expect(faults([full])).toEqual(['there is no budget/Priced.v1.json']);
    expect(faults([old])).toEqual(['there is no budget/Priced.v2.json']);
  });

  it('reports an old version without an upcaster', () =>
    expect(faults([old, full], [])).toEqual([
      expect.stringMatching(/^budget\/Priced\.v1\.json cannot be read any more: schemaVersion/),
    ]));

  it('reports content that the contract drops or rejects', () => {
    const renamed = { ...full, data: { microUsd: 3, note: 'x', currency: 'usd' } };
    expect(faults([old, renamed])).toEqual([
      'budget/Priced.v2.json cannot be read any more: its contract does not know currency any more',
    ]);
    const refused = { ...full, data: { microUsd: 'three', note: 'x' } };
    expect(faults([old, refused])[0]).toMatch(
      /budget\/Priced\.v2\.json cannot be read any more: data\.microUsd/,
    );
  });

  it('reports a field that no payload shows, and a type without a contract', () => {
    const thin = { ...full, data: { microUsd: 3 } };
    expect(faults([old, thin])).toEqual(['no golden payload of Priced shows its field note']);
    const gone = { ...full, file: 'budget/Gone.v1.json', type: 'Gone' };
    expect(faults([old, full, gone])).toEqual(['budget/Gone.v1.json: no contract reads Gone any more']);
  });
});
