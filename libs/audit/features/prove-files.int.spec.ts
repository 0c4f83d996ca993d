import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { SignedTreeRoot } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import {
  AT,
  appendFacts,
  agent,
  inAuditWorld,
  publicKey,
  reader,
  rewrite,
  signLog,
} from './audit-world.spec.js';
import { type FilesProof, proveFiles, verifyFilesProof } from './prove-files.js';

inAuditWorld();

const idOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const streamOf = (n: number): string => `file-tree-${idOf(n)}`;
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');
const shared = { cause: { actor: 'local' }, at: AT };
const written = (path: string, text: string, before: string | null = null): [string, JsonObject] => [
  'FileWritten',
  {
    ...shared,
    path,
    digest: digestOf(text),
    size: text.length,
    mode: 0o644,
    before: before && digestOf(before),
  },
];
const forked = (base: number, version: number): [string, JsonObject] => [
  'FileTreeForked',
  { ...shared, base: idOf(base), version },
];

/** Proves the tree after the last event of a stream, or after the one of a version. */
const prove = async (root: SignedTreeRoot, n: number, version?: number): Promise<FilesProof> => {
  const events = await agent.readStream('default', streamOf(n));
  const { eventId } = events.at(version === undefined ? -1 : version - 1)!;
  return proveFiles({ pool: reader, eventId, publicKeys: [publicKey], roots: [root], archives: '.' });
};
const verify = (proof: unknown) => verifyFilesProof(JSON.stringify(proof), [publicKey]);
const contentsOf = (proof: unknown): Record<string, string> =>
  Object.fromEntries([...verify(proof).files].map(([path, { digest }]) => [path, digest]));

describe('the proof of a tree', () => {
  it('shows its files at the proved version, with the key alone', async () => {
    await appendFacts([streamOf(1), written('a', 'one'), written('b', 'two'), written('a', 'three', 'one')]);
    const root = await signLog();
    const proof = await prove(root, 1);
    expect(contentsOf(proof)).toEqual({ a: digestOf('three'), b: digestOf('two') });
    expect(verify(proof).version).toBe(3);
    expect(contentsOf(await prove(root, 1, 1))).toEqual({ a: digestOf('one') });
  });

  it('of a fork has the files of its bases at the fork point', async () => {
    await appendFacts([streamOf(1), written('a', 'one'), written('b', 'two'), written('a', 'late', 'one')]);
    await appendFacts([streamOf(2), forked(1, 2), written('c', 'own')]);
    await appendFacts([streamOf(3), forked(2, 4), written('a', 'third', 'one')]);
    // Of a fork whose base had no change of its own before it.
    await appendFacts([streamOf(4), forked(2, 2), written('d', 'x')]);
    await appendFacts([streamOf(5), forked(2, 3), written('d', 'x')]);
    await appendFacts([streamOf(6), forked(2, 1), written('d', 'x')]);
    const root = await signLog();
    const base = { a: digestOf('one'), b: digestOf('two') };
    const fork = await prove(root, 2);
    expect(contentsOf(fork)).toEqual({ ...base, c: digestOf('own') });
    expect(verify(fork).version).toBe(4);
    expect(contentsOf(await prove(root, 3))).toEqual({
      a: digestOf('third'),
      b: digestOf('two'),
      c: digestOf('own'),
    });
    expect(contentsOf(await prove(root, 4))).toEqual({ ...base, d: digestOf('x') });
    expect(contentsOf(await prove(root, 5))).toEqual({ ...base, d: digestOf('x') });
    expect(contentsOf(await prove(root, 6))).toEqual({ a: digestOf('one'), d: digestOf('x') });
  });

  it.each<[string, (proof: FilesProof) => unknown]>([
    [
      'a changed fact',
      ({ trees: [, fork] }) => void ((fork?.events[1]?.data as Record<string, unknown>)['path'] = 'x'),
    ],
    ['a fact that is left out', ({ trees: [base] }) => (base?.events as unknown[]).splice(0, 1)],
    ['a last fact that is left out', ({ trees: [, fork] }) => (fork?.events as unknown[]).pop()],
    ['a base that is left out', ({ trees }) => (trees as unknown[]).shift()],
    ['trees in another order', ({ trees }) => (trees as unknown[]).reverse()],
    ['a field that is missing', ({ trees: [base] }) => delete (base as { proof?: unknown }).proof],
  ])('does not hold with %s', async (_, alter) => {
    await appendFacts([streamOf(1), written('a', 'one'), written('b', 'two')]);
    await appendFacts([streamOf(2), forked(1, 2), written('c', 'own')]);
    const root = await signLog();
    const proof = structuredClone(await prove(root, 2));
    alter(proof);
    expect(() => verify(proof)).toThrow(/the proof does not hold/);
  });

  it('is refused for a fact that was changed after it was signed', async () => {
    await appendFacts([streamOf(1), written('a', 'one'), written('b', 'two')]);
    const [, { eventId } = { eventId: '' }] = await agent.readStream('default', streamOf(1));
    const root = await signLog();
    await rewrite(streamOf(1), 1, `data = jsonb_set(data, '{digest}', '"${digestOf('two')}"')`);
    const proving = proveFiles({
      pool: reader,
      eventId,
      publicKeys: [publicKey],
      roots: [root],
      archives: '.',
    });
    await expect(proving).rejects.toMatchObject({ code: 'PROOF.INVALID' });
  });
});
