import { existsSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';

interface Chunk {
  readonly file: string;
  readonly imports?: readonly string[];
  readonly css?: readonly string[];
  readonly isEntry?: boolean;
}

const DIST = new URL('dist/', import.meta.url);
const KIB = 1_024;
/** Pages of a graph bring a library for it and have a budget of their own. */
const GRAPH_PAGE = /workflow/;

const gzipped = (file: string): number => gzipSync(readFileSync(new URL(file, DIST)), { level: 6 }).length;

/** Returns a chunk with everything that it imports before it runs. */
const closureOf = (
  manifest: Readonly<Record<string, Chunk>>,
  name: string,
  seen = new Set<string>(),
): Set<string> => {
  if (seen.has(name)) return seen;
  seen.add(name);
  for (const imported of manifest[name]?.imports ?? []) closureOf(manifest, imported, seen);
  return seen;
};

describe('the built dashboard', () => {
  const path = new URL('manifest.json', DIST);
  const manifest = existsSync(path)
    ? (JSON.parse(readFileSync(path, 'utf8')) as Readonly<Record<string, Chunk>>)
    : {};
  const names = Object.keys(manifest);
  const entry = names.find((name) => manifest[name]?.isEntry) ?? '';
  const pages = names.filter((name) => name.startsWith('src/pages/'));
  const sizeOf = (chunks: Iterable<string>): number =>
    [...chunks].reduce((sum, name) => sum + gzipped(manifest[name]?.file ?? ''), 0);

  it('loads at most 300 KiB of compressed script for the first view of any page', () => {
    expect(entry).not.toBe('');
    expect(sizeOf(closureOf(manifest, entry))).toBeGreaterThan(0);
    expect(pages.length).toBeGreaterThan(10);
    for (const page of pages.filter((name) => !GRAPH_PAGE.test(name))) {
      const chunks = closureOf(manifest, page, closureOf(manifest, entry));
      expect([page, sizeOf(chunks) <= 300 * KIB]).toEqual([page, true]);
    }
  });

  it('loads at most 135 KiB of compressed script for the overview', () => {
    const overview = pages.find((name) => /overview/.test(name)) ?? '';
    const size = sizeOf(closureOf(manifest, overview, closureOf(manifest, entry)));
    expect(Math.ceil(size / KIB)).toBeGreaterThan(50);
    expect(Math.ceil(size / KIB)).toBeLessThanOrEqual(135);
  });

  it('loads at most 200 KiB of compressed script for a chat', () => {
    const chat = closureOf(manifest, entry);
    for (const page of ['chats-page', 'chat-page']) closureOf(manifest, `src/pages/chats/${page}.tsx`, chat);
    expect([...chat].some((name) => name.includes('markdown'))).toBe(true);
    expect(Math.ceil(sizeOf(chat) / KIB)).toBeLessThanOrEqual(200);
  });

  it('adds at most 140 KiB of compressed script for a page with a graph', () => {
    const first = closureOf(manifest, entry);
    const graphs = pages.filter((name) => GRAPH_PAGE.test(name));
    expect(graphs.length).toBeGreaterThan(0);
    for (const page of graphs) {
      const more = [...closureOf(manifest, page)].filter((name) => !first.has(name));
      expect(sizeOf(more)).toBeGreaterThan(0);
      expect([page, sizeOf(more) <= 140 * KIB]).toEqual([page, true]);
    }
  });

  it('lists files with at most 160 KiB, and loads at most 200 KiB more to show and compare text', () => {
    const first = closureOf(manifest, entry);
    const list = closureOf(manifest, 'src/pages/files/files-page.tsx', new Set(first));
    expect(sizeOf(list)).toBeLessThanOrEqual(160 * KIB);
    const code = ['code', 'merge', 'version-diff'].map((name) => `src/pages/files/${name}.tsx`);
    const more = code.flatMap((name) => [...closureOf(manifest, name)]).filter((name) => !list.has(name));
    expect(sizeOf(new Set(more))).toBeLessThanOrEqual(200 * KIB);
  });

  it('has at most 40 KiB of compressed style', () => {
    const files = new Set(names.flatMap((name) => manifest[name]?.css ?? []));
    expect(files.size).toBeGreaterThan(0);
    expect([...files].reduce((sum, file) => sum + gzipped(file), 0)).toBeLessThanOrEqual(40 * KIB);
  });

  it('has the production build of React', () => {
    const script = readFileSync(new URL(manifest[entry]?.file ?? '', DIST), 'utf8');
    expect(script).toContain('https://react.dev/errors/');
    expect(script).not.toContain('Download the React DevTools');
  });

  it('has no script and no style in its page', () => {
    const page = readFileSync(new URL('index.html', DIST), 'utf8');
    expect(page).not.toMatch(/<style|<script(?![^>]*\ssrc=)/);
    expect(page).toContain('nonce="__CSP_NONCE__"');
  });
});
