import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { PROVIDER_FACTS, PROVIDER_KINDS } from '@antiphon/config';

const ROOT = resolve(import.meta.dirname, '../../..');
const SOURCES = ['apps', 'libs', 'tools'].map((folder) => `${folder}/**/*.{ts,mjs,cjs}`);
/** How a source names a variable of ours: as a string, or as a property of an environment. */
const USE = /(?:['"`]|\.|\{ ?|^ *)(ANTIPHON_[A-Z_]+)\b/gm;
/** OpenTelemetry's, as its variables are named in our contract of them. */
const OTEL_USE = /^ *(OTEL_[A-Z_]+):/gm;
const OTEL_SOURCE = 'libs/platform/observability/telemetry.ts';
/** Variables that one Antiphon process sets for another of the same run. */
const INTERNAL: ReadonlySet<string> = new Set([
  'ANTIPHON_TEST_COUNT_FILE',
  'ANTIPHON_TEST_DEADLINE',
  'ANTIPHON_TEST_RUN',
  'ANTIPHON_FIGURES_FILE',
  'ANTIPHON_HOSTILE_TEXTS',
  'ANTIPHON_HOSTILE_SEED',
]);

/**
 * The sizes of nightly tests are not settings of Antiphon: `npm run test:nightly -- --help` has
 * them.
 */
const isSource = (path: string): boolean =>
  !/(^|\/)(node_modules|dist|fixtures)\/|^tools\/nightly\//.test(path) && !/\.spec\.(ts|mjs)$/.test(path);

const usedVariables = (): Set<string> => {
  const texts = SOURCES.flatMap((pattern) => globSync(pattern, { cwd: ROOT }))
    .filter(isSource)
    .map((path) => readFileSync(join(ROOT, path), 'utf8'));
  const names = texts.flatMap((text) => [...text.matchAll(USE)].map((match) => match[1] ?? ''));
  return new Set(names.filter((name) => !INTERNAL.has(name) && !name.endsWith('_')));
};

describe('.env.example', () => {
  const documented = new Set(
    [...readFileSync(join(ROOT, '.env.example'), 'utf8').matchAll(/^#?([A-Z_]+)=/gm)].map(
      (match) => match[1],
    ),
  );

  it('has every variable that a source names', () =>
    expect([...usedVariables()].filter((name) => !documented.has(name))).toEqual([]));

  it('has every variable of OpenTelemetry that is read', () => {
    const names = [...readFileSync(join(ROOT, OTEL_SOURCE), 'utf8').matchAll(OTEL_USE)].map(
      ([, name]) => name,
    );
    expect(names.length).toBeGreaterThan(15);
    expect(names.filter((name) => !documented.has(name))).toEqual([]);
  });

  it('has the default variable of each kind of provider', () =>
    expect(
      PROVIDER_KINDS.flatMap((kind) => PROVIDER_FACTS[kind].keyVariable ?? []).filter(
        (name) => !documented.has(name),
      ),
    ).toEqual([]));
});
