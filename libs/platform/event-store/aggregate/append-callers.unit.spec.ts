import { describe, expect, it } from '@jest/globals';
import { readFileSync, readdirSync } from 'node:fs';
import { basename, dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../../../..');
const NO_PRODUCT = /(^|\/)(dist|node_modules|testing|gateway-e2e)\/|\.spec\.ts$|\.simulation\.ts$|\.d\.ts$/;

/** Calls and other uses of a method `append`. */
const APPEND = /\.append\(|\['append'\]|\{[^{}]*\bappend\b[^{}]*\} = /;
const CONFLICT = /'LOG\.VERSION_CONFLICT'/;

/** Product files that use a method `append`, each with its reason. */
const APPENDS: Readonly<Record<string, string>> = {
  'aggregate-store.ts': 'the aggregate store',
  'postgres-event-store.ts': 'the event store itself: its group commit',
  'inbox-signals.ts': 'wraps the event store: announces the messages of each append',
  'agent-folders.ts': 'wraps the event store: creates the folders of each agent that becomes ready',
  'session-stream.ts': 'a method of its own, on top of the aggregate store',
  'file-trees.ts': 'the recorder of a change, which is the actor of a session',
  'files.ts': 'the recorder of a change, which is the actor of a session',
  'answer-builder.ts': 'appends text to an answer',
  'chats.controller.ts': 'forwards a message of a chat as a turn',
};

/** Product files that name the code of a conflict, each with its reason. */
const CONFLICTS: Readonly<Record<string, string>> = {
  'retry-conflicts.ts': 'the one check of a conflict',
  'append-outcome.ts': 'the event store creates the error',
  'ledger-transaction.ts': 'the ledger appends in SQL, with its balances, and has more reasons to repeat',
  'spawn-agent.handler.ts': 'refuses an agent that is in the tree before an append does',
};

const withoutComments = (text: string): string => text.replace(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, '');

const productFiles = (): { name: string; text: string }[] =>
  ['libs', 'apps'].flatMap((top) =>
    readdirSync(join(ROOT, top), { recursive: true, encoding: 'utf8' })
      .map((path) => path.split(sep).join('/'))
      .filter((path) => /\.tsx?$/.test(path) && !NO_PRODUCT.test(path))
      .filter((path) => !/^testing\//.test(path))
      .map((path) => {
        return { name: path, text: withoutComments(readFileSync(join(ROOT, top, path), 'utf8')) };
      }),
  );

describe('product code of all projects', () => {
  const files = productFiles();
  const unlisted = (pattern: RegExp, known: Readonly<Record<string, string>>): string[] =>
    files
      .filter(({ name, text }) => pattern.test(text) && !(basename(name) in known))
      .map(({ name }) => name);

  it('is read from the disk', () => expect(files.length).toBeGreaterThan(800));

  it('appends to the event store through the aggregate store', () => {
    expect(unlisted(APPEND, APPENDS)).toEqual([]);
  });

  it('asks one function for a conflict', () => expect(unlisted(CONFLICT, CONFLICTS)).toEqual([]));

  it('needs each exception of the lists', () => {
    const used = (pattern: RegExp) =>
      new Set(files.filter(({ text }) => pattern.test(text)).map(({ name }) => basename(name)));
    expect(Object.keys(APPENDS).filter((name) => !used(APPEND).has(name))).toEqual([]);
    expect(Object.keys(CONFLICTS).filter((name) => !used(CONFLICT).has(name))).toEqual([]);
  });
});
