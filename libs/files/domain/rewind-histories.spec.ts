import { expect } from '@jest/globals';
import type { FileTreeEvent } from '@antiphon/contracts/agent';
import { isAppError } from '@antiphon/kernel';
import { createSeededRandom } from '@antiphon/testing/load';
import type { SeededRandom } from '@antiphon/testing/load';
import { decideFiles } from './file-tree.decider.js';
import type { FileCommand } from './file-tree.decider.js';
import { emptyFileTree, foldFileTree } from './file-tree.js';
import type { FileEntry, FileTree } from './file-tree.js';
import { planRewind } from './rewind.js';

export const SESSIONS = [1, 2, 3].map((n) => `00000000-0000-4000-8000-00000000000${n}`);
const PATHS = ['a', 'b', 'c/d', 'c/e', 'f'];
const LIMITS = { maxFileBytes: 1e6, maxFiles: 1e6, maxBytes: 1e9, maxVersions: 1e6 };
const AT = '2026-01-01T00:00:00.000Z';

/** One fact of the model: a session gives paths new contents, null for none. */
interface ModelFact {
  readonly sessionId: string;
  readonly contents: Readonly<Record<string, string | null>>;
}

export const decideFor = (
  tree: FileTree,
  sessionId: string,
  commands: readonly FileCommand[],
): FileTreeEvent[] =>
  decideFiles(tree, commands, { at: AT, cause: { actor: 'local', sessionId }, limits: LIMITS });

const contentsOf = ({ files }: FileTree): Record<string, string> =>
  Object.fromEntries([...files.values()].map(({ path, digest }) => [path, digest]).sort());

/** Describes an event as the model sees it: contents by path and nothing else. */
const modelOf = ({ type, data }: FileTreeEvent): ModelFact['contents'] => {
  if (type === 'FileTreeForked') return {};
  if (type === 'FileMoved') return { [data.path]: null, [data.to]: data.digest };
  if (type === 'FileDeleted') return { [data.path]: null };
  return { [data.path]: data.digest };
};

/** Replays the whole history without the facts of a session after an event, path by path. */
const rewindModel = (facts: readonly ModelFact[], at: number, sessionId: string): Record<string, string> => {
  const paths = new Set(facts.flatMap(({ contents }) => Object.keys(contents)));
  const result: Record<string, string> = {};
  for (const path of paths) {
    const isTaken = ({ sessionId: by }: ModelFact, index: number): boolean => index < at || by !== sessionId;
    const kept = facts.filter((fact, index) => path in fact.contents && isTaken(fact, index));
    const last = kept.at(-1)?.contents[path] ?? null;
    if (last !== null) result[path] = last;
  }
  return Object.fromEntries(Object.entries(result).sort());
};

const randomCommand = ({ below, pick }: SeededRandom, tree: FileTree, nth: number): FileCommand => {
  const present = [...tree.files.keys()];
  const path = pick(PATHS);
  const kind = below(100);
  if (kind < 55 || present.length === 0)
    return { op: 'write', path, digest: nth.toString(16).padStart(64, '0'), size: 1 };
  if (kind < 75) return { op: 'delete', path: pick(present) };
  if (kind < 95) return { op: 'move', path: pick(present), to: path };
  const [from, file] = pick<readonly [number, FileEntry | null]>([...tree.bin, [0, null]]);
  return file ? { op: 'restore', path: file.path, from, file } : { op: 'delete', path: pick(present) };
};

/**
 * Checks one random history of three sessions. After a rewind the tree equals the model, and files
 * that the session did not change are the same. Newer changes of others are listed.
 */
export const checkRandomHistory = (seed: number): void => {
  const random = createSeededRandom(seed);
  let tree = emptyFileTree();
  const events: FileTreeEvent[] = [];
  const facts: ModelFact[] = [];
  for (let step = 0; step < 60; step++) {
    const sessionId = random.pick(SESSIONS);
    try {
      const decided = decideFor(tree, sessionId, [randomCommand(random, tree, step + 1)]);
      tree = foldFileTree(tree, decided);
      events.push(...decided);
      facts.push(...decided.map((event) => ({ sessionId, contents: modelOf(event) })));
    } catch (error) {
      if (!isAppError(error)) throw error;
    }
  }
  const at = random.below(events.length + 1);
  const sessionId = SESSIONS[0] ?? '';
  const before = foldFileTree(emptyFileTree(), events.slice(0, at));
  const later = events.slice(at).map((event, index) => ({ event, version: at + index + 1 }));
  const { commands, conflicts } = planRewind(sessionId, before, tree, later);
  const rewound = foldFileTree(tree, decideFor(tree, sessionId, commands));
  expect(contentsOf(rewound)).toEqual(rewindModel(facts, at, sessionId));
  const own = new Set(
    facts.slice(at).flatMap((fact) => (fact.sessionId === sessionId ? Object.keys(fact.contents) : [])),
  );
  for (const [path, file] of tree.files)
    if (!own.has(path)) expect(rewound.files.get(path)?.digest).toBe(file.digest);
  const overtaken = [...own].filter((path) => {
    const first = facts.findIndex(
      (fact, index) => index >= at && fact.sessionId === sessionId && path in fact.contents,
    );
    return facts.some(
      (fact, index) => index > first && fact.sessionId !== sessionId && path in fact.contents,
    );
  });
  expect(conflicts.map(({ path }) => path)).toEqual(overtaken.sort());
};
