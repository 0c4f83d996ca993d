import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';

const ROOT = new URL('../', import.meta.url);
/** Publishers whose packages reach the browser: those of one scope come from one, trusted once. */
const MAX_PUBLISHERS = 15;
const publisherOf = (name: string): string => (name.startsWith('@') ? (name.split('/')[0] ?? name) : name);
/** Library that lays graphs out, which takes too long for the thread of the page. */
const LAYOUT = '@dagrejs/dagre';

interface Package {
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

const { dependencies = {}, devDependencies = {} } = JSON.parse(
  readFileSync(new URL('package.json', ROOT), 'utf8'),
) as Package;
const { packages } = JSON.parse(readFileSync(new URL('../../package-lock.json', ROOT), 'utf8')) as {
  readonly packages: Readonly<Record<string, Package>>;
};
const sources = readdirSync(new URL('src/', ROOT), { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name) && !name.endsWith('.spec.ts'))
  .map((name) => ({ name, text: readFileSync(new URL(`src/${name}`, ROOT), 'utf8') }));

describe('the dependencies of the dashboard', () => {
  it('come from 15 publishers at most that reach the browser', () => {
    expect(new Set(Object.keys(dependencies).map(publisherOf)).size).toBeLessThanOrEqual(MAX_PUBLISHERS);
    const imported = sources.flatMap(({ text }) =>
      [...text.matchAll(/^import (?!type)[^;]*?from '((?:@[\w-]+\/)?[\w-]+)/gm)].map(([, name]) => name),
    );
    const unknown = imported.filter((name) => name !== undefined && !(name in dependencies));
    // Rules of the contracts are compiled into the page, as the client is.
    expect([...new Set(unknown)].filter((name) => !name?.startsWith('@antiphon/'))).toEqual([]);
  });

  it('are pinned to one version, which the lock file has with its digest', () => {
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
      expect([name, version]).toEqual([name, expect.stringMatching(/^\d+\.\d+\.\d+$/)]);
      const locked = packages[`apps/dashboard/node_modules/${name}`] ?? packages[`node_modules/${name}`];
      if (!name.startsWith('@antiphon/'))
        expect([name, locked]).toEqual([
          name,
          expect.objectContaining({ version, integrity: expect.stringMatching(/^sha512-/) }),
        ]);
    }
  });

  it('lay graphs out in a worker only', () => {
    const users = sources.filter(({ text }) => text.includes(LAYOUT)).map(({ name }) => name);
    expect(users).toEqual(['pages/workflow/layout.worker.ts']);
    const worker = sources.filter(({ text }) => /layout\.worker/.test(text)).map(({ name }) => name);
    expect(worker).toEqual(['pages/workflow/layout.ts']);
  });
});
