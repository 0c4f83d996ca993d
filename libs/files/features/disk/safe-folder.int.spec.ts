import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { isSafePath } from './folder-walk.js';
import { SafeFolder, digestOfBytes } from './safe-folder.js';
import { PATH_CASES } from '../testing/path-corpus.js';
import { raceForOutside } from '../testing/swap-race.js';

let base: string;
let root: string;
let folder: SafeFolder;

const bytes = (text: string): Buffer => Buffer.from(text);
const digest = (text: string): string => digestOfBytes(bytes(text));
const textOf = async (path: string): Promise<string | undefined> =>
  (await folder.read(path))?.bytes.toString('utf8');
const refusedWith = (code: string) => expect.objectContaining({ code }) as unknown;

beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), 'antiphon-safe-'));
  root = join(base, 'ws-1');
  mkdirSync(join(base, 'outside'));
  mkdirSync(join(base, 'ws-1-evil'));
  writeFileSync(join(base, 'outside', 'secret'), 'secret');
  folder = await SafeFolder.open(root, join(base, 'partial'));
});
afterEach(async () => {
  await folder.close();
  rmSync(base, { recursive: true, force: true });
});

const outside = (): Record<string, string[]> => ({
  outside: readdirSync(join(base, 'outside')),
  evil: readdirSync(join(base, 'ws-1-evil')),
  base: readdirSync(base).sort(),
  secret: [readFileSync(join(base, 'outside', 'secret'), 'utf8')],
});
const UNTOUCHED = {
  outside: ['secret'],
  evil: [],
  base: ['outside', 'partial', 'ws-1', 'ws-1-evil'],
  secret: ['secret'],
};

describe('a safe folder', () => {
  it('reads what it wrote, with its mode, and leaves no unfinished file', async () => {
    await folder.write('a/b/c.txt', bytes('one'), 0o755, null);
    await folder.write('a/b/c.txt', bytes('two'), 0o644, digest('one'));
    const read = await folder.read('a/b/c.txt');
    expect([read?.bytes.toString(), read?.mode]).toEqual(['two', 0o644]);
    expect((await folder.list()).files.map(({ path }) => path)).toEqual(['a/b/c.txt']);
    expect(readdirSync(join(base, 'partial'))).toEqual([]);
  });

  it('has mode 700, as its folders have', async () => {
    await folder.write('a/f', bytes('one'), 0o644, null);
    expect([root, join(root, 'a')].map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o700]);
  });

  it('deletes a file and the folders that it empties', async () => {
    await folder.write('a/b/c.txt', bytes('one'), 0o644, null);
    await folder.write('a/d.txt', bytes('two'), 0o644, null);
    await folder.remove('a/b/c.txt', digest('one'));
    await folder.remove('a/b/missing.txt', digest('one'));
    expect(readdirSync(join(root, 'a'))).toEqual(['d.txt']);
  });

  it('returns null for a missing file', async () => expect(await folder.read('x/y/z')).toBeNull());

  it('does not overwrite or delete a file that another program changed', async () => {
    await folder.write('f', bytes('ours'), 0o644, null);
    writeFileSync(join(root, 'f'), 'theirs');
    const changed = refusedWith('FILE.DISK_CHANGED');
    await expect(folder.write('f', bytes('new'), 0o644, digest('ours'))).rejects.toEqual(changed);
    await expect(folder.write('f', bytes('new'), 0o644, null)).rejects.toEqual(changed);
    await expect(folder.remove('f', digest('ours'))).rejects.toEqual(changed);
    expect(await textOf('f')).toBe('theirs');
    expect(readdirSync(join(base, 'partial'))).toEqual([]);
  });

  it('deletes interrupted writes, and keeps replaced bytes that exist only there', async () => {
    writeFileSync(join(base, 'partial', 'new-1'), 'half');
    writeFileSync(join(base, 'partial', 'old-1'), 'known');
    writeFileSync(join(base, 'partial', 'old-2'), 'theirs');
    const left = await folder.clean((known) => Promise.resolve(known === digest('known')));
    expect(left).toEqual([join(base, 'partial', 'old-2')]);
    expect(readdirSync(join(base, 'partial'))).toEqual(['old-2']);
  });
});

describe('a safe folder and hostile paths', () => {
  it.each(PATH_CASES)('refuses $id and touches nothing outside', async ({ input }) => {
    const refused = refusedWith('FILE.INVALID_PATH');
    await expect(folder.read(input)).rejects.toEqual(refused);
    await expect(folder.write(input, bytes('x'), 0o644, null)).rejects.toEqual(refused);
    await expect(folder.remove(input, digest('x'))).rejects.toEqual(refused);
    expect(outside()).toEqual(UNTOUCHED);
    expect((await folder.list()).files).toEqual([]);
  });

  it('accepts names of other scripts and spaces', () =>
    expect(['a b/ç.md', '日本語/メモ.txt', '.env', 'a..b', '-x', 'con.d/x'].map(isSafePath)).toEqual([
      true,
      true,
      true,
      true,
      true,
      false,
    ]));
});

describe('a safe folder and links', () => {
  const notPlain = refusedWith('FILE.NOT_PLAIN');

  /** Links at each component of `a/b/f`, of which the last may dangle. */
  const LINKS: readonly (readonly [string, () => void])[] = [
    ['the first component', () => symlinkSync(join(base, 'outside'), join(root, 'a'))],
    [
      'a component between',
      () => {
        mkdirSync(join(root, 'a'));
        symlinkSync(join(base, 'outside'), join(root, 'a', 'b'));
      },
    ],
    [
      'the last component',
      () => {
        mkdirSync(join(root, 'a', 'b'), { recursive: true });
        symlinkSync(join(base, 'outside', 'secret'), join(root, 'a', 'b', 'f'));
      },
    ],
    [
      'a dangling last component',
      () => {
        mkdirSync(join(root, 'a', 'b'), { recursive: true });
        symlinkSync(join(base, 'outside', 'created'), join(root, 'a', 'b', 'f'));
      },
    ],
    [
      'a hard link',
      () => {
        mkdirSync(join(root, 'a', 'b'), { recursive: true });
        linkSync(join(base, 'outside', 'secret'), join(root, 'a', 'b', 'f'));
      },
    ],
    [
      'a named pipe',
      () => {
        mkdirSync(join(root, 'a', 'b'), { recursive: true });
        execFileSync('mkfifo', [join(root, 'a', 'b', 'f')]);
      },
    ],
  ];

  // @shows chats-C11
  it.each(LINKS)('refuses %s for reading, writing and deleting', async (_, prepare) => {
    prepare();
    const existing = existsSync(join(root, 'a', 'b', 'f'));
    await expect(folder.read('a/b/f')).rejects.toEqual(notPlain);
    await expect(folder.write('a/b/f', bytes('x'), 0o644, digest('secret'))).rejects.toEqual(notPlain);
    await expect(folder.write('a/b/f', bytes('x'), 0o644, null)).rejects.toBeInstanceOf(Error);
    await expect(folder.remove('a/b/f', digest('secret'))).rejects.toEqual(notPlain);
    expect(outside()).toEqual(UNTOUCHED);
    expect(existsSync(join(root, 'a', 'b', 'f'))).toBe(existing);
  });

  it('lists links, special files and unsafe names as refused, and does not enter them', async () => {
    symlinkSync(join(base, 'outside'), join(root, 'link'));
    linkSync(join(base, 'outside', 'secret'), join(root, 'hard'));
    execFileSync('mkfifo', [join(root, 'pipe')]);
    writeFileSync(join(root, 'bad\nname'), '');
    writeFileSync(join(root, 'plain'), '');
    const { files, refused } = await folder.list();
    expect(files.map(({ path }) => path)).toEqual(['plain']);
    expect(refused).toEqual(['bad\nname', 'hard', 'link', 'pipe']);
  });

  it('refuses a root that is a link', async () => {
    symlinkSync(join(base, 'outside'), join(base, 'linked'));
    await expect(SafeFolder.open(join(base, 'linked'), join(base, 'partial'))).rejects.toEqual(notPlain);
  });

  it.each(['folder', 'file'] as const)(
    'touches nothing outside while a %s is exchanged for a link',
    async (part) => {
      const race = await raceForOutside(400, part);
      expect(race).toMatchObject({ tries: 400, outside: 0 });
      expect(race.swaps).toBeGreaterThan(40);
    },
  );
});
