import { describe, expect, it, jest } from '@jest/globals';
import * as parts from './parts.mjs';
import * as runner from './run-part.mjs';
import * as table from './table.mjs';

jest.setTimeout(30_000);

interface Part {
  readonly name: string;
  readonly shows: string;
  readonly args: readonly string[];
  readonly minutes: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly missing?: () => string | null;
}
interface Outcome {
  readonly result: 'ok' | 'failed' | 'skipped';
  readonly note: string;
  readonly rows: readonly object[];
  readonly ms: number;
}
const { listParts, findSpecs, specName } = parts as {
  listParts(profile: { quick: boolean; cold: boolean }): Part[];
  findSpecs(): string[];
  specName(path: string): string;
};
const { runPart } = runner as { runPart(part: Part, signal?: AbortSignal): Promise<Outcome> };
const { formatTime, renderSum, renderTable } = table as {
  formatTime(ms: number): string;
  renderSum(results: readonly object[]): string;
  renderTable(results: readonly object[]): string;
};

const partOf = (script: string, minutes = 1): Part => ({
  name: 'sample',
  shows: 'a sample',
  args: ['-e', script],
  minutes,
});

describe('the parts of a nightly run', () => {
  it('have a part for each nightly spec, with a description and a name of its own', () => {
    const names = listParts({ quick: false, cold: false }).map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toEqual(expect.arrayContaining(findSpecs().map(specName)));
    for (const { shows } of listParts({ quick: false, cold: false }))
      expect(shows).not.toContain('no description');
  });

  it('include the clone with empty caches in a full run, and in a quick one on request', () => {
    const hasCold = (quick: boolean, cold: boolean) =>
      listParts({ quick, cold }).some(({ name }) => name === 'cold-clone');
    expect([hasCold(false, false), hasCold(true, false), hasCold(true, true)]).toEqual([true, false, true]);
  });
});

describe('runPart', () => {
  it('returns the count of tests and the recorded figures', async () => {
    const row = { what: 'p99', figure: '2 ms', bound: 'at most 3 ms', ok: true };
    const script = `require('node:fs').appendFileSync(process.env.ANTIPHON_FIGURES_FILE, ${JSON.stringify(JSON.stringify(row))} + '\\n'); console.log('4 passed, 0 failed, 1 skipped')`;
    expect(await runPart(partOf(script))).toMatchObject({
      ...{ result: 'ok', note: '4 passed, 0 failed, 1 skipped' },
      rows: [{ what: 'p99', figure: '2 ms', bound: 'at most 3 ms', result: 'ok' }],
    });
  });

  it('returns a row for each check that a script prints', async () => {
    const script = `console.log('ok    start: ready in 3 s\\nskip  mounts: needs root (mount)'); process.exitCode = 1`;
    expect(await runPart(partOf(script))).toMatchObject({
      ...{ result: 'failed', note: 'exit code 1' },
      rows: [
        { what: 'start', figure: 'ready in 3 s', result: 'ok' },
        { what: 'mounts', figure: 'needs root (mount)', result: 'skipped' },
      ],
    });
  });

  it('names the signal that ended a part', async () => {
    const script = 'process.kill(process.pid, "SIGKILL")';
    expect(await runPart(partOf(script))).toMatchObject({ result: 'failed', note: 'ended by SIGKILL' });
  });

  it('returns the exit code when no test has run', async () => {
    const script = `console.log('0 passed, 0 failed'); process.exitCode = 2`;
    expect(await runPart(partOf(script))).toMatchObject({ result: 'failed', note: 'exit code 2' });
  });

  it('ends a part at its time limit, with the processes that it has started', async () => {
    const child = `require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' }); setInterval(() => {}, 1000)`;
    expect(await runPart(partOf(child, 0.02))).toMatchObject({
      ...{ result: 'failed', note: 'time limit of 0.02 min' },
    });
  });

  it('skips a part that needs something that the machine lacks, with the reason', async () => {
    const part = { ...partOf('process.exit(1)'), missing: () => 'go is not installed' };
    expect(await runPart(part)).toMatchObject({ result: 'skipped', note: 'go is not installed', ms: 0 });
  });
});

describe('the table of a nightly run', () => {
  const part = partOf('');
  const outcome: Outcome = {
    ...{ result: 'failed', note: '3 passed, 1 failed', ms: 61_000 },
    rows: [{ what: 'p99 of resume', figure: '12 s', bound: 'at most 10 s', result: 'failed' }],
  };

  it('has a row for each part and each figure', () =>
    expect(renderTable([{ part, outcome }]).split('\n')).toEqual([
      'part    what it shows  figure              bound         result  time',
      '------  -------------  ------------------  ------------  ------  ---------',
      'sample  a sample       3 passed, 1 failed                failed  1 min 1 s',
      '        p99 of resume  12 s                at most 10 s  failed',
    ]));

  it('counts passed, failed and skipped parts', () => {
    const skipped = { ...outcome, result: 'skipped', ms: 0 };
    expect(renderSum([{ outcome }, { outcome: skipped }])).toBe('0 passed, 1 failed, 1 skipped in 1 min 1 s');
  });

  it('shows times in minutes and seconds', () =>
    expect([400, 59_600, 3_600_000].map(formatTime)).toEqual(['0 s', '1 min 0 s', '60 min 0 s']));
});
