import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { ESLint } from 'eslint';

const workspace = join(import.meta.dirname, '../..');
const eslint = new ESLint({ cwd: workspace });

/** The ids of the rules that a text breaks when it stands in this folder. */
const broken = async (folder: string, code: string, name = 'lint-fixture.ts'): Promise<string[]> => {
  const [result] = await eslint.lintText(code, { filePath: join(workspace, folder, name) });
  return [...new Set(result?.messages.map((message) => message.ruleId ?? message.message))];
};

const BOUNDARY = 'house/module-boundaries';

describe('the house rules', () => {
  it.each([
    [
      'a domain that imports another domain',
      'libs/conversation/domain',
      `export * from '@antiphon/metering-domain';`,
    ],
    ['a domain that imports a library', 'libs/conversation/domain', `export * from 'pg';`],
    ['a domain that imports a Node module', 'libs/conversation/domain', `export * from 'node:fs';`],
    [
      'a domain that imports a contract as a value',
      'libs/conversation/domain',
      `export * from '@antiphon/contracts/agent';`,
    ],
    [
      "a feature that imports another context's domain",
      'libs/agent/features',
      `export * from '@antiphon/memory-domain';`,
    ],
    [
      'a feature that imports another feature',
      'libs/agent/features',
      `export * from '@antiphon/memory-features';`,
    ],
    [
      'a platform library that imports a context',
      'libs/platform/messaging',
      `export * from '@antiphon/conversation-domain';`,
    ],
    [
      "a platform library that imports a context's contracts",
      'libs/platform/messaging',
      `export * from '@antiphon/contracts/agent';`,
    ],
    ['a kernel that imports anything', 'libs/kernel', `export * from 'zod';`],
    ['contracts that import more than zod', 'libs/contracts/agent', `export * from '@antiphon/kernel';`],
    [
      'a relative import that leaves its package',
      'libs/agent/features',
      `export * from '../domain/index.js';`,
    ],
    [
      'a context that imports one above it',
      'libs/files/features',
      `export * from '@antiphon/conversation-features';`,
    ],
    ['an app that imports a domain', 'apps/agent/src', `export * from '@antiphon/conversation-domain';`],
    ['code that imports test helpers', 'libs/agent/features', `export * from '@antiphon/testing';`],
    ['a package that does not exist', 'libs/agent/features', `export * from '@antiphon/utils';`],
    [
      'a dynamic import across a border',
      'libs/conversation/domain',
      `export const x = import('@antiphon/messaging');`,
    ],
  ])('refuse %s', async (_, folder, code) => expect(await broken(folder, code)).toContain(BOUNDARY));

  it.each([
    [
      'a domain with kernel and contract types',
      'libs/conversation/domain',
      `export * from '@antiphon/kernel';\nexport type * from '@antiphon/contracts/agent';`,
    ],
    [
      'a feature with its own domain',
      'libs/conversation/features',
      `export * from '@antiphon/conversation-domain';`,
    ],
    [
      'a context with one below it',
      'libs/conversation/features',
      `export * from '@antiphon/files-features';`,
    ],
    [
      'a platform library with the contracts of messaging',
      'libs/platform/messaging',
      `export * from '@antiphon/contracts/messaging';`,
    ],
  ])('accept %s', async (_, folder, code) => expect(await broken(folder, code)).toEqual([]));

  it('let the dashboard import the folds of sessions and runs, but no schemas', async () => {
    const file = ['apps/dashboard/src/data', 'store.ts'] as const;
    const brokenBy = (contract: string) =>
      broken(file[0], `export * from '@antiphon/contracts/${contract}';`, file[1]);
    expect(await brokenBy('session-fold')).toEqual([]);
    expect(await brokenBy('run-fold')).toEqual([]);
    expect(await brokenBy('agent')).toContain(BOUNDARY);
  });

  it('let specs, and only specs, import test helpers', async () =>
    expect(
      await broken('libs/agent/features', `export * from '@antiphon/testing';`, 'lint-fixture.unit.spec.ts'),
    ).toEqual([]));

  it.each([
    ['the clock', 'export const now = () => Date.now();', 'no-restricted-globals'],
    ['randomness', 'export const dice = () => Math.random();', 'no-restricted-properties'],
    ['timers', 'export const later = (f: () => void) => setTimeout(f, 1);', 'no-restricted-globals'],
  ])('keep %s out of a domain', async (_, code, rule) =>
    expect(await broken('libs/conversation/domain', code)).toContain(rule),
  );

  it('keep process.env to the configuration', async () => {
    const code = `export const home = process.env['HOME'];`;
    expect(await broken('libs/agent/features', code)).toContain('no-restricted-syntax');
    expect(await broken('libs/platform/config', code)).toEqual([]);
  });

  it.each([
    ['file tools', 'libs/files/domain', `export const f = (): Error => rejected('FILE.A', 'no');`],
    ['agents', 'libs/agents/domain', `throw rejected('AGENT.A', 'no');`],
    ['plan tools', 'libs/orchestration/domain/plans', `throw conflict('PLAN.A', text);`],
    ['model calls', 'libs/providers/features/transport', `throw new ModelFailure({ message: 'no' });`],
  ])('keep sentences out of the errors of %s, which facts record', async (_, folder, code) =>
    expect(await broken(folder, code)).toContain('no-restricted-syntax'),
  );

  it('bound the length of files and functions', async () => {
    const lines = (count: number) => Array.from({ length: count }, (_, i) => `  void ${i};`).join('\n');
    expect(await broken('libs/kernel', `export const f = () => {\n${lines(58)}\n};`)).toEqual([]);
    const nested = `export const f = () => {\n  const g = () => {\n${lines(57)}\n  };\n  g();\n};`;
    expect(await broken('libs/kernel', nested)).toEqual(['house/function-length']);
    expect(await broken('libs/kernel', lines(251).replaceAll('  void', 'void'))).toContain('max-lines');
  });

  it.each([
    ['kick', 'export const kick = (): void => undefined;'],
    ['a bare conjunction', 'export const unlessStopped = (): void => undefined;'],
    ['an indefinite person', 'export interface Answer { readonly fromSomebody: string }'],
    ['a metaphor in a parameter', 'export const f = (approvalDesk: string): string => approvalDesk;'],
    ['a metaphor in a method', 'export class Cell { raiseWall(): void { return; } }'],
  ])('refuse %s as a name', async (_, code) =>
    expect(await broken('libs/kernel', code)).toEqual(['house/plain-names']),
  );

  it('refuse a file with such a name', async () =>
    expect(await broken('libs/kernel', 'export const f = 1;', 'lint-fixture.approval-desk.ts')).toEqual([
      'house/plain-names',
    ]));

  it('accept plain names', async () =>
    expect(await broken('libs/kernel', 'export const wallClock = 1;\nexport const order = 2;')).toEqual([]));

  it.each([
    ['a sleep in a spec', `import { sleep } from '@antiphon/kernel';\nawait sleep(5);`, 'unit.spec'],
    ['a poll in a spec', `import { sleep } from '@antiphon/kernel';\nfor (;;) await sleep(5);`, 'unit.spec'],
    [
      'a sleep by another name',
      `import { setTimeout as pause } from 'node:timers/promises';\nawait pause(5);`,
      'int.spec',
    ],
    [
      'a timer as a promise',
      'export const f = () => new Promise((resolve) => setTimeout(resolve, 5));',
      'e2e.spec',
    ],
    ['a sleep in a helper', `import { sleep } from '@antiphon/kernel';\nawait sleep(5);`, 'helper'],
  ])('refuse %s', async (_, code, role) => {
    const folder = role === 'helper' ? 'libs/agent/features/testing' : 'libs/agent/features';
    expect(await broken(folder, code, `lint-fixture.${role}.ts`)).toEqual(['house/named-waits']);
  });

  it('accept a named wait, the poll of a helper, and a timer that is no wait', async () => {
    const spec = (code: string) => broken('libs/agent/features', code, 'lint-fixture.unit.spec.ts');
    const waits = `import { letTimePass, until } from '@antiphon/testing/waits';`;
    expect(await spec(`${waits}\nawait letTimePass(5);\nawait until(() => true);`)).toEqual([]);
    expect(await spec('export const f = (stop: () => void) => setTimeout(stop, 5);')).toEqual([]);
    const poll = `import { sleep } from '@antiphon/kernel';\nfor (;;) await sleep(5);`;
    expect(await broken('libs/agent/features/testing', poll)).toEqual([]);
  });

  it.each([
    ['let', `let id = '';\nit('a', () => { id = 'a'; });\nit('b', () => { expect(id).toBe('a'); });`],
    [
      'let in a describe',
      `describe('x', () => {\n  let id = '';\n  it.each([1])('a', () => { id = 'a'; });\n  it('b', () => { expect(id).toBe('a'); });\n});`,
    ],
  ])('refuse a test that reads what another one has assigned: %s', async (_, code) =>
    expect(await broken('libs/agent/features', code, 'lint-fixture.unit.spec.ts')).toEqual([
      'house/independent-tests',
    ]),
  );

  it.each([
    [
      'beforeEach',
      `let id = '';\nbeforeEach(() => { id = ''; });\nit('a', () => { id = 'a'; expect(id).toBe('a'); });\nit('b', () => { expect(id).toBe(''); });`,
    ],
    ['beforeAll', `let id = '';\nbeforeAll(() => { id = 'a'; });\nit('b', () => { expect(id).toBe('a'); });`],
    [
      'the test itself',
      `let id = '';\nit('a', () => { id = 'a'; expect(id).toBe('a'); });\nit('b', () => { id = 'b'; expect(id).toBe('b'); });`,
    ],
  ])('accept a variable that %s assigns', async (_, code) =>
    expect(await broken('libs/agent/features', code, 'lint-fixture.unit.spec.ts')).toEqual([]),
  );

  it.each([
    ['blanks at the end', String.raw`/[ \t]+(?=\r?$)/`],
    ['blanks after no backslash', String.raw`/(?<!\\)[ \t]+$/`],
    ['blanks before a comment', String.raw`/[ \t]*<!--[ \t]*(s\d+)[ \t]*-->[ \t]*$/`],
    ['two repeats of one character', String.raw`/^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/`],
    ['counts within counts', String.raw`/(.{1,30}){1,30}[yz]{5}/`],
    ['a repeat in a repeat', String.raw`/^(?:a+)+b/`],
    ['a large count', String.raw`/x[^y]{0,5000}y/`],
    ['a repeat of its own start', String.raw`/<!--[^>]*-->/`],
    ['a repeat over lines', String.raw`/^import [^;]* from/m`],
    ['a word that can begin anywhere', String.raw`/\b[a-z][a-z0-9.]*:\/\//`],
    ['an expression of text', 'new RegExp(text)'],
  ])('refuse a regular expression that is not linear: %s', async (_, expression) => {
    const code = `export const f = (text: string): boolean => (${expression}).test(text);`;
    expect(await broken('libs/agent/features', code)).toEqual(['house/linear-regexp']);
    expect(await broken('libs/agent/features', code, 'lint-fixture.unit.spec.ts')).toEqual([]);
  });

  it.each([
    String.raw`/^[a-z]{1,20}-[A-Za-z0-9-]{1,180}$/`,
    String.raw`/(?<!\/)\/+$/`,
    String.raw`/\s+/g`,
    String.raw`/\{\{([^{}]*)\}\}/g`,
    String.raw`/^[ \t]*local\s/m`,
    'new RegExp(`^${"[0-9]"}+$`)',
  ])('accept a linear regular expression: %s', async (expression) => {
    const code = `export const f = (text: string): boolean => (${expression}).test(text);`;
    expect(await broken('libs/agent/features', code)).toEqual([]);
  });

  it('refuse any, console and loose equality', async () => {
    const code = `export const f = (x: any): void => {\n  if (x == 1) console.log(x);\n};`;
    expect((await broken('libs/agent/features', code)).sort()).toEqual([
      '@typescript-eslint/no-explicit-any',
      'eqeqeq',
      'no-console',
    ]);
  });
});
