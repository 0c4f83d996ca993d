import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Time without work after which the first start of a process fails, ms. */
export const IDLE_START_MS = 20_000;

/** Part of one core below which a process does not work. A wait that polls needs less. */
const WORKING_SHARE = 0.1;
/** Bytes that a process reads and writes in the same time while it works, such as a recovery. */
const WORKING_BYTES = 256 * 1024;
/** Ticks of a processor in a second, on every Linux. */
const TICKS = 100;
const SAMPLES = 20;

interface Sample {
  readonly at: number;
  readonly processorMs: number;
  readonly bytes: number;
}

/** Returns the work of a process so far; null where the system does not tell. */
const sampleOf = (pid: number): Sample | null => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const processorMs = ((Number(fields[11]) + Number(fields[12])) * 1_000) / TICKS;
    const [, read = '0', written = '0'] =
      /^rchar: (\d+)\nwchar: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, 'utf8')) ?? [];
    return { at: performance.now(), processorMs, bytes: Number(read) + Number(written) };
  } catch {
    return null;
  }
};

const isIdle = (from: Sample, to: Sample): boolean =>
  (to.processorMs - from.processorMs) / (to.at - from.at) < WORKING_SHARE &&
  to.bytes - from.bytes < WORKING_BYTES;

/**
 * Resolves to true once a process has not worked for `idleMs`: it waits for something that does not
 * come. A process of a slow machine works. Resolves to false when the signal aborts.
 */
export const waitUntilIdle = async (pid: number, idleMs: number, signal: AbortSignal): Promise<boolean> => {
  const samples: Sample[] = [];
  while (!signal.aborted) {
    const sample = sampleOf(pid);
    if (sample !== null) samples.push(sample);
    const last = samples.at(-1);
    while (last && samples[1] && last.at - samples[1].at >= idleMs) samples.shift();
    const [first] = samples;
    if (first && last && last.at - first.at >= idleMs && isIdle(first, last)) return true;
    await sleep(idleMs / SAMPLES, undefined, { signal }).catch(() => undefined);
  }
  return false;
};
