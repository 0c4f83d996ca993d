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
import { SafeFolder, digestOfBytes } from '../files/disk/safe-folder.js';

/** Exchanges `d` for a link to the folder outside, and back, until it is told to stop. */
const SWAP = `
  const { workerData } = require('node:worker_threads');
  const fs = require('node:fs');
  const { folder, outside, flag } = workerData;
  const stop = new Int32Array(flag);
  let swaps = 0;
  while (Atomics.load(stop, 0) === 0) {
    try {
      fs.renameSync(folder, folder + '-real');
      fs.symlinkSync(outside, folder);
      fs.unlinkSync(folder);
      fs.renameSync(folder + '-real', folder);
    } catch {
      // The other thread created the folder, or a file in it, between two of these steps.
      try {
        fs.rmSync(folder, { force: true, recursive: true });
        fs.mkdirSync(folder, { recursive: true });
      } catch {}
    }
    Atomics.add(stop, 1, 1);
  }
`;

/** A file system in memory: fsync costs nothing there. */
const MEMORY = '/dev/shm';

export interface RaceResult {
  readonly tries: number;
  /** Times that the folder was exchanged. */
  readonly swaps: number;
  /** Tries that worked, inside. */
  readonly done: number;
  /** Effects outside: files read, created, changed or deleted. */
  readonly outside: number;
}

/** Writes, reads and deletes `d/f` again and again while another thread exchanges `d` for a link. */
export const raceForOutside = async (tries: number): Promise<RaceResult> => {
  const base = mkdtempSync(join(existsSync(MEMORY) ? MEMORY : tmpdir(), 'antiphon-race-'));
  const outsideFolder = join(base, 'outside');
  const root = join(base, 'root');
  mkdirSync(join(root, 'd'), { recursive: true });
  mkdirSync(outsideFolder);
  writeFileSync(join(outsideFolder, 'f'), 'secret');
  const shared = new SharedArrayBuffer(8);
  const flag = new Int32Array(shared);
  const workerData = { folder: join(root, 'd'), outside: outsideFolder, flag: shared };
  const worker = new Worker(SWAP, { eval: true, workerData });
  const folder = await SafeFolder.open(root, join(base, 'partial'));
  const secret = digestOfBytes(Buffer.from('secret'));
  let outside = 0;
  let done = 0;
  try {
    while (Atomics.load(flag, 1) === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    for (let round = 0; round < tries; round++) {
      const work = [
        () => folder.write('d/f', Buffer.from('ours'), 0o644, round % 2 === 0 ? null : secret),
        () => folder.read('d/f'),
        () => folder.remove('d/f', round % 2 === 0 ? digestOfBytes(Buffer.from('ours')) : secret),
      ][round % 3];
      const result = await work?.().catch(() => null);
      if (result) done++;
      if (result && 'bytes' in result && result.bytes.toString() === 'secret') outside++;
      if (readdirSync(outsideFolder).join() !== 'f') outside++;
    }
    if (readFileSync(join(outsideFolder, 'f'), 'utf8') !== 'secret') outside++;
  } finally {
    Atomics.store(flag, 0, 1);
    await worker.terminate();
    await folder.close();
    rmSync(base, { recursive: true, force: true });
  }
  return { tries, swaps: Atomics.load(flag, 1), done, outside };
};
