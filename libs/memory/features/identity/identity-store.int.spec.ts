import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MAX_DOCUMENT_BYTES, openIdentityStore } from '@antiphon/memory-features';
import { createLogger } from '@antiphon/observability';

let root: string;
let folder: string;
let lines: { level: string; message: string; [field: string]: unknown }[];
const logger = createLogger({
  service: 'memory',
  sink: { write: (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[number]) },
});

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'antiphon-identity-'));
  folder = join(root, 'ada');
  mkdirSync(folder);
  lines = [];
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const write = (file: string, text: string | Uint8Array) => writeFileSync(join(folder, file), text);
const writeAll = () => {
  write('SOUL.md', '## Tone\n\nSoft.\n');
  write('AGENT.md', '## Job\n\nReviewer.\n');
  write('IDENTITY.md', 'Name: Ada\n');
  write('USER.md', '## Tone\n\nLoud.\n\n## Job\n\nWriter.\n');
};
const open = (more: { soulPath?: string | null; identityDir?: string | null } = {}, now?: () => number) =>
  openIdentityStore([{ id: 'main', name: 'Ada', soulPath: null, identityDir: folder, ...more }], logger, now);
const warnings = () => lines.filter(({ level }) => level === 'warn');
const conflicts = () => lines.filter(({ message }) => message === 'identity documents conflict');
const compiled = () => lines.filter(({ message }) => message === 'agent identity compiled');
const soulOf = async (store: Awaited<ReturnType<typeof open>>) => (await store.soulOf('main'))?.text;

describe("an agent's documents", () => {
  it('become one packet, equal in every process, with a log line for each conflict', async () => {
    writeAll();
    const [one, other] = [await open(), await open()];
    const text = '## Tone\n\nSoft.\n\n# Agent\n\n## Job\n\nReviewer.\n\n# Identity\n\nName: Ada';
    expect(await one.soulOf('main')).toEqual({ text, tokens: Math.ceil(text.length / 3) });
    expect(await soulOf(other)).toBe(text);
    expect(one.facts()).toEqual(other.facts());
    expect(one.facts()).toMatchObject([
      { agentId: 'main', conflicts: 2, digest: expect.stringMatching(/^[0-9a-f]{64}$/) },
    ]);
    expect(
      conflicts().map(({ agentId, section, kept, dropped }) => [agentId, section, kept, dropped]),
    ).toEqual(
      [one, other].flatMap(() => [
        ['main', 'tone', 'SOUL.md', 'USER.md'],
        ['main', 'job', 'AGENT.md', 'USER.md'],
      ]),
    );
    expect(warnings()).toHaveLength(4);
  });

  it('are reported once while unchanged', async () => {
    writeAll();
    const store = await open();
    await Promise.all(Array.from({ length: 20 }, () => store.soulOf('main')));
    utimesSync(join(folder, 'SOUL.md'), new Date(), new Date());
    await store.soulOf('main');
    expect(compiled()).toHaveLength(1);
    expect(conflicts()).toHaveLength(2);
  });

  it('cause one warning when some are missing', async () => {
    write('SOUL.md', 'You are kind.');
    expect(await soulOf(await open())).toBe('You are kind.');
    expect(warnings()).toMatchObject([
      { missing: ['AGENT.md', 'IDENTITY.md', 'USER.md'].map((file) => join(folder, file)) },
    ]);
  });

  it('cause no further warning at an edit when some stay missing', async () => {
    write('SOUL.md', 'one');
    const store = await open();
    write('SOUL.md', 'two');
    await store.soulOf('main');
    expect(compiled()).toHaveLength(2);
    expect(warnings()).toHaveLength(1);
    rmSync(join(folder, 'SOUL.md'));
    await store.soulOf('main');
    expect(warnings().at(-1)).toMatchObject({ missing: [join(folder, 'SOUL.md')] });
  });

  it.each([['ada'], ['nowhere']])('leave the name when all are missing: %s', async (name) => {
    expect(await soulOf(await open({ identityDir: join(root, name) }))).toBe('You are Ada.');
    expect(warnings()).toHaveLength(1);
  });

  it('may have the soul in another file', async () => {
    writeAll();
    writeFileSync(join(root, 'other.md'), 'You are bold.');
    expect(await soulOf(await open({ soulPath: join(root, 'other.md') }))).toMatch(
      /^You are bold\.\n\n# Agent/,
    );
  });

  it('are none without configuration', async () => {
    const store = await open({ identityDir: null });
    expect([await store.soulOf('main'), await store.soulOf('missing-agent'), lines]).toEqual([
      null,
      null,
      [],
    ]);
  });
});

describe('an edit', () => {
  it('shows in the next context', async () => {
    write('SOUL.md', 'one');
    const store = await open();
    for (const text of ['two', 'six', 'ten']) {
      write('SOUL.md', text);
      expect(await soulOf(store)).toBe(text);
    }
  });

  it('of the same length and time shows in the next context', async () => {
    const at = new Date('2026-01-01T00:00:00Z');
    write('SOUL.md', 'one');
    utimesSync(join(folder, 'SOUL.md'), at, at);
    const store = await open({}, () => Date.now() + 3_600_000);
    expect(await soulOf(store)).toBe('one');
    write('.new', 'two');
    utimesSync(join(folder, '.new'), at, at);
    renameSync(join(folder, '.new'), join(folder, 'SOUL.md'));
    expect(await soulOf(store)).toBe('two');
  });

  it('that removes or restores a document shows in the next context', async () => {
    writeAll();
    const store = await open();
    rmSync(join(folder, 'SOUL.md'));
    expect(await soulOf(store)).toMatch(/^# Agent\n\n## Job/);
    write('SOUL.md', 'Back.');
    expect(await soulOf(store)).toMatch(/^Back\./);
  });
});

describe('a hostile document', () => {
  it.each([
    ['huge', () => write('USER.md', 'x'.repeat(MAX_DOCUMENT_BYTES + 1)), 'larger than'],
    ['not UTF-8', () => write('USER.md', Uint8Array.of(0xff, 0xfe, 0x41, 0)), 'not UTF-8'],
    ['a folder', () => mkdirSync(join(folder, 'USER.md')), 'not a regular file'],
    ['a pipe', () => execFileSync('mkfifo', [join(folder, 'USER.md')]), 'not a regular file'],
    ['a link to itself', () => symlinkSync('USER.md', join(folder, 'USER.md')), 'ELOOP'],
    [
      'a link out of the folder',
      () => {
        writeFileSync(join(root, 'secret'), 'do not read');
        symlinkSync('../secret', join(folder, 'USER.md'));
      },
      'leads out of',
    ],
  ])('that is %s is skipped with one warning', async (_what, plant, reason) => {
    writeAll();
    rmSync(join(folder, 'USER.md'));
    plant();
    const store = await open();
    expect(await soulOf(store)).toBe(
      '## Tone\n\nSoft.\n\n# Agent\n\n## Job\n\nReviewer.\n\n# Identity\n\nName: Ada',
    );
    expect(warnings()).toMatchObject([
      { path: join(folder, 'USER.md'), reason: expect.stringContaining(reason) },
    ]);
  });

  it('may be a link within the folder, as Kubernetes mounts them', async () => {
    mkdirSync(join(folder, '..data'));
    writeFileSync(join(folder, '..data', 'SOUL.md'), 'Mounted.');
    symlinkSync('..data/SOUL.md', join(folder, 'SOUL.md'));
    expect(await soulOf(await open())).toBe('Mounted.');
  });

  it('of the maximum size is clipped, in a time that grows with its size only', async () => {
    /** Returns the least processor time of two compilations of documents of a size, microseconds. */
    const timeOf = async (bytes: number): Promise<number> => {
      write('SOUL.md', '# a\n- k: v\n'.repeat(bytes / 11 - 1));
      write('USER.md', '-'.repeat(bytes));
      const times: number[] = [];
      for (let run = 0; run < 2; run++) {
        const before = process.cpuUsage();
        const soul = await (await open()).soulOf('main');
        const { user, system } = process.cpuUsage(before);
        times.push(user + system);
        expect(soul?.tokens).toBeLessThanOrEqual(1_500);
      }
      return Math.min(...times);
    };
    await timeOf(MAX_DOCUMENT_BYTES / 8);
    const quarter = await timeOf(MAX_DOCUMENT_BYTES / 4);
    // 4 times the size takes 4 times as long. A clip that is quadratic takes 16 times as long.
    expect((await timeOf(MAX_DOCUMENT_BYTES)) / quarter).toBeLessThan(10);
  });
});
