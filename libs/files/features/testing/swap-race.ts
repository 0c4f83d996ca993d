import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { SafeFolder, digestOfBytes } from '../disk/safe-folder.js';
import { DiskWorld, WORKSPACE } from './disk-world.js';

/** Exchanges a path for a link to a target outside, and back, until it is told to stop. */
const SWAP = `
  const { workerData } = require('node:worker_threads');
  const fs = require('node:fs');
  const { path, parked, target, isFolder, flag } = workerData;
  const state = new Int32Array(flag);
  while (Atomics.load(state, 0) === 0) {
    try {
      fs.renameSync(path, parked);
      fs.symlinkSync(target, path);
      Atomics.add(state, 1, 1);
      fs.unlinkSync(path);
      fs.renameSync(parked, path);
    } catch {
      // The other thread created or removed the path between two of these steps.
      try {
        fs.rmSync(parked, { force: true, recursive: true });
        if (fs.lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) fs.unlinkSync(path);
        if (isFolder) fs.mkdirSync(path, { recursive: true });
      } catch {}
    }
  }
`;

/** A file system in memory: fsync costs nothing there. */
const MEMORY = '/dev/shm';
const SECRET = 'secret';

/** Part of the path `d/f` that is exchanged for a link. */
export type SwappedPart = 'folder' | 'file';

export interface RaceResult {
  readonly tries: number;
  /** Times that a link was in the place of the part. */
  readonly swaps: number;
  /** Tries that worked, inside. */
  readonly done: number;
  /** Effects outside: files read, created, changed or deleted. */
  readonly outside: number;
}

/** A folder outside with one secret file, to which a part of `d/f` below a root is linked. */
export class SwapRace {
  private readonly outside: string;
  private readonly shared = new SharedArrayBuffer(8);
  private readonly state = new Int32Array(this.shared);
  private readonly worker: Worker;

  /** Starts to exchange. `base` is a folder outside of the root, on its file system. */
  constructor(base: string, root: string, part: SwappedPart) {
    this.outside = join(base, 'outside');
    mkdirSync(join(root, 'd'), { recursive: true });
    mkdirSync(this.outside, { recursive: true });
    writeFileSync(join(this.outside, 'f'), SECRET);
    const isFolder = part === 'folder';
    const path = isFolder ? join(root, 'd') : join(root, 'd', 'f');
    const target = isFolder ? this.outside : join(this.outside, 'f');
    const parked = join(base, 'parked');
    this.worker = new Worker(SWAP, {
      eval: true,
      workerData: { path, parked, target, isFolder, flag: this.shared },
    });
  }

  /** Times that a link was in the place of the part. */
  swaps(): number {
    return Atomics.load(this.state, 1);
  }

  /** True if a file outside was created, changed or deleted. */
  isTouched(): boolean {
    if (readdirSync(this.outside).join() !== 'f') return true;
    return readFileSync(join(this.outside, 'f'), 'utf8') !== SECRET;
  }

  /** Ends after a whole exchange: a link left in place would lead the next race outside. */
  async stop(): Promise<void> {
    const exited = once(this.worker, 'exit');
    Atomics.store(this.state, 0, 1);
    await exited;
  }
}

export const secretDigest = digestOfBytes(Buffer.from(SECRET));
const ours = Buffer.from('ours');

const makeBase = (): string => mkdtempSync(join(existsSync(MEMORY) ? MEMORY : tmpdir(), 'antiphon-race-'));

/** Writes, reads and deletes `d/f` in a safe folder while a part of it is exchanged for a link. */
export const raceForOutside = async (tries: number, part: SwappedPart = 'folder'): Promise<RaceResult> => {
  const base = makeBase();
  const root = join(base, 'root');
  const folder = await SafeFolder.open(root, join(base, 'partial'));
  const race = new SwapRace(base, root, part);
  let [outside, done] = [0, 0];
  try {
    for (let round = 0; round < tries; round++) {
      const work = [
        () => folder.write('d/f', ours, 0o644, round % 2 === 0 ? null : secretDigest),
        () => folder.read('d/f'),
        () => folder.remove('d/f', round % 2 === 0 ? digestOfBytes(ours) : secretDigest),
      ][round % 3];
      const result = await work?.().catch(() => null);
      if (result) done++;
      if (result && 'bytes' in result && result.bytes.toString() === SECRET) outside++;
      if (race.isTouched()) outside++;
    }
  } finally {
    await race.stop();
    await folder.close();
    rmSync(base, { recursive: true, force: true });
  }
  return { tries, swaps: race.swaps(), done, outside };
};

/** Most files of the tree: conflicts give the file further names. */
const MOST_FILES = 20;

/** Changes `d/f` in a tree and follows it with its folder while a part is exchanged for a link. */
export const raceFolderForOutside = async (tries: number, part: SwappedPart): Promise<RaceResult> => {
  const world = new DiskWorld();
  await world.lead();
  const follower = await world.startFollower();
  await follower.sync();
  const race = new SwapRace(world.base, world.root, part);
  let [outside, done] = [0, 0];
  try {
    for (let round = 0; round < tries; round++) {
      if (round % 3 === 2) await world.deleteTree('d/f').catch(() => undefined);
      else await world.writeTree('d/f', `ours ${round}`);
      const synced = await follower.sync().catch(() => null);
      if (synced && synced.written + synced.removed > 0) done++;
      const { files } = await world.trees.read(WORKSPACE, world.treeId);
      if ([...files.values()].some(({ digest }) => digest === secretDigest)) outside++;
      if (race.isTouched() || world.blobs.has(secretDigest)) outside++;
      if (files.size > MOST_FILES)
        await world.change([...files.keys()].map((path) => ({ op: 'delete', path })));
    }
  } finally {
    await race.stop();
    await world.close();
  }
  return { tries, swaps: race.swaps(), done, outside };
};
