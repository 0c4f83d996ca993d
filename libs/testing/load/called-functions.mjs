/**
 * Preloaded into a service (`--import`), with `?folder=` in its address. At each SIGUSR2 it writes
 * the modules of the project of which a function was called since the signal before. The first
 * signal writes the modules that ran at the start.
 */
import { Session } from 'node:inspector/promises';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = new URL(import.meta.url).searchParams.get('folder') ?? '';
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

const isProduct = ({ url }) => url.includes('/dist/') && !url.includes('/node_modules/');
/** The code of a module itself begins at its first character. It runs once, when it is loaded. */
const isCalled = ({ ranges: [{ startOffset, count }] }) => startOffset > 0 && count > 0;

let taken = 0;
process.on('SIGUSR2', async () => {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const called = result.filter((module) => isProduct(module) && module.functions.some(isCalled));
  const file = join(folder, `${process.pid}-${++taken}.json`);
  // A reader sees the whole file or none.
  writeFileSync(`${file}.new`, JSON.stringify(called.map(({ url }) => url)));
  renameSync(`${file}.new`, file);
});
