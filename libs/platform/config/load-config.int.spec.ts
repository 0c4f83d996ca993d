import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isAppError } from '@antiphon/kernel';
import { configProblems, loadConfig } from '@antiphon/config';
import type { Environment } from '@antiphon/config';

let cwd: string;
let homeDir: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'antiphon cwd-'));
  homeDir = mkdtempSync(join(tmpdir(), 'antiphon-home-'));
});
afterEach(() => [cwd, homeDir].forEach((folder) => rmSync(folder, { recursive: true, force: true })));

const load = (env: Environment = {}) => loadConfig({ env, cwd, homeDir });
const write = (folder: string, name: string, text: string | Uint8Array): string => {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), text, { mode: 0o600 });
  return join(folder, name);
};
const refusal = (run: () => unknown): unknown => {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error('the configuration was accepted');
};

// @shows L6
describe('where the configuration comes from', () => {
  it('prefers ANTIPHON_CONFIG, then the working folder, then the home, then the defaults', () => {
    expect(load().source).toBeNull();
    const home = write(join(homeDir, '.antiphon'), 'config.toml', '[gateway]\nport = 1');
    expect(load()).toMatchObject({ source: home, gateway: { port: 1 } });
    const local = write(cwd, 'antiphon.toml', '[gateway]\nport = 2');
    expect(load()).toMatchObject({ source: local, gateway: { port: 2 } });
    const named = write(join(cwd, 'other'), 'mine.toml', '[gateway]\nport = 3');
    expect(load({ ANTIPHON_CONFIG: named })).toMatchObject({ source: named, gateway: { port: 3 } });
    expect(load({ ANTIPHON_CONFIG: join('other', 'mine.toml') }).source).toBe(named);
  });

  it('treats an empty ANTIPHON_CONFIG as none', () =>
    expect(load({ ANTIPHON_CONFIG: '' }).source).toBeNull());

  it('prefers the token of the environment over the one of the file', () => {
    const [secret, own] = ['from a secret'.padEnd(32, '!'), 'of the file'.padEnd(32, '!')];
    expect(load({ ANTIPHON_GATEWAY_TOKEN: `${secret}\n` }).gateway.token).toBe(secret);
    write(cwd, 'antiphon.toml', `[gateway]\ntoken = "${own}"`);
    expect(load({ ANTIPHON_GATEWAY_TOKEN: secret }).gateway.token).toBe(secret);
    expect(load({ ANTIPHON_GATEWAY_TOKEN: '' }).gateway.token).toBe(own);
  });

  it('refuses a token of the environment that is under 32 characters, and does not show it', () => {
    const error = refusal(() => load({ ANTIPHON_GATEWAY_TOKEN: 'x7'.repeat(15) }));
    expect(error).toMatchObject({ code: 'CONFIG.INVALID' });
    expect(configProblems(error)[0]).toMatchObject({
      file: 'ANTIPHON_GATEWAY_TOKEN',
      message: 'the token has 30 characters (not shown)',
      expected: expect.stringContaining('at least 32 characters'),
    });
  });

  it('never falls back from an explicit path', () => {
    write(cwd, 'antiphon.toml', '');
    const error = refusal(() => load({ ANTIPHON_CONFIG: '/nope.toml' }));
    expect(error).toMatchObject({ code: 'CONFIG.NOT_FOUND' });
    expect(configProblems(error)[0]).toMatchObject({ file: '/nope.toml' });
  });

  it('refuses a folder instead of a file', () => {
    mkdirSync(join(cwd, 'antiphon.toml'));
    expect(refusal(() => load())).toMatchObject({ code: 'CONFIG.UNREADABLE' });
  });

  // @shows U44
  it('reads a file with a byte order mark and Windows line ends', () => {
    write(cwd, 'antiphon.toml', '\ufeff[gateway]\r\nport = 2\r\n');
    expect(load().gateway.port).toBe(2);
  });
});

describe('paths', () => {
  it('are relative to the file, and to the home with ~', () => {
    write(
      join(cwd, 'conf'),
      'a.toml',
      `[[agents]]\nid = "a"\nsoul_path = "soul.md"\nidentity_dir = "~/id"\n[[plugins]]\nname = "p"\npath = "plugins/../p.wasm"`,
    );
    const config = load({ ANTIPHON_CONFIG: 'conf/a.toml' });
    expect(config.agents[0]).toMatchObject({
      soulPath: join(cwd, 'conf', 'soul.md'),
      identityDir: join(homeDir, 'id'),
    });
    expect(config.plugins[0]?.path).toBe(join(cwd, 'conf', 'p.wasm'));
  });

  it('may be omitted for a bundled plug-in, which then runs its own module', () => {
    write(cwd, 'antiphon.toml', `[[plugins]]\nname = "http-get"\ncapabilities = ["http:api.example.com"]`);
    const [plugin] = load().plugins;
    expect(plugin).toMatchObject({ name: 'http-get', path: null, capabilities: ['http:api.example.com'] });
  });
});

describe('plug-in files', () => {
  const plugin = (path: string): string => `[[plugins]]\nname = "p"\npath = ${JSON.stringify(path)}`;

  it('warns of a missing one and continues', () => {
    write(cwd, 'antiphon.toml', plugin('gone.wasm'));
    expect(load().warnings).toEqual([expect.stringContaining('gone.wasm does not exist')]);
  });

  it('accepts a link within its own folder, as in mounted volumes', () => {
    write(join(cwd, 'v', '..2026'), 'p.wasm', 'x');
    symlinkSync('..2026', join(cwd, 'v', '..data'));
    symlinkSync(join('..data', 'p.wasm'), join(cwd, 'v', 'p.wasm'));
    write(cwd, 'antiphon.toml', plugin('v/p.wasm'));
    expect(load().warnings).toEqual([]);
  });

  it.each(['../p.wasm', 'a/../../p.wasm', './../p.wasm', '..\\p.wasm', '..'])(
    'refuses %s, which leaves the folder of the configuration',
    (path) => {
      write(cwd, 'antiphon.toml', plugin(path));
      expect(configProblems(refusal(() => load()))[0]).toMatchObject({
        key: 'plugins[0].path',
        message: expect.stringContaining('leads out of the folder'),
      });
    },
  );

  it('refuses a path behind a link of a folder that leads out', () => {
    const outside = mkdtempSync(join(tmpdir(), 'antiphon-outside-'));
    write(outside, 'p.wasm', 'x');
    symlinkSync(outside, join(cwd, 'plugins'));
    write(cwd, 'antiphon.toml', plugin('plugins/p.wasm'));
    expect(configProblems(refusal(() => load()))[0]).toMatchObject({ key: 'plugins[0].path' });
    rmSync(outside, { recursive: true });
  });

  it('accepts an absolute path', () => {
    write(cwd, 'antiphon.toml', plugin('/nowhere/p.wasm'));
    expect(load().warnings).toEqual([expect.stringContaining('/nowhere/p.wasm does not exist')]);
  });

  it('refuses a folder', () => {
    mkdirSync(join(cwd, 'p.wasm'));
    write(cwd, 'antiphon.toml', plugin('p.wasm'));
    expect(configProblems(refusal(() => load()))[0]).toMatchObject({ key: 'plugins[0].path' });
  });
});

describe('warnings', () => {
  it('name a token file that other users may read', () => {
    const file = write(cwd, 'antiphon.toml', `[gateway]\ntoken = "${'t'.repeat(32)}"`);
    expect(load().warnings).toEqual([]);
    chmodSync(file, 0o644);
    expect(load().warnings).toEqual([expect.stringContaining('chmod 600')]);
  });

  it('name a tool that no plug-in provides', () => {
    write(cwd, 'antiphon.toml', '[[agents]]\nid = "a"\ntools = ["calcluator"]');
    expect(load().warnings).toEqual([expect.stringContaining('did you mean calculator?')]);
  });
});

// @shows L5
describe('the reference file', () => {
  const reference = resolve(import.meta.dirname, '../../../examples/antiphon.toml');

  it('loads as written, without keys and without a warning', () =>
    expect(load({ ANTIPHON_CONFIG: reference })).toMatchObject({ warnings: [], agents: [{ id: 'main' }] }));

  it('loads with every commented setting enabled', () => {
    const text = readFileSync(reference, 'utf8').replaceAll(/^#(?=\S)/gm, '');
    write(cwd, 'antiphon.toml', text);
    const env = { ANTHROPIC_API_KEY: 'a', OPENAI_API_KEY: 'b' };
    const config = load(env);
    expect(config.warnings).toEqual([
      expect.stringContaining('company.pem cannot be read (ENOENT), so that its calls fail'),
      expect.stringContaining('weather.wasm does not exist'),
    ]);
    expect(config.bindings).toHaveLength(3);
  });
});

it('parses any bytes in the file, or fails with a CONFIG code', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      write(cwd, 'antiphon.toml', bytes);
      try {
        load();
      } catch (error) {
        expect(isAppError(error) && error.code).toMatch(/^CONFIG\./);
      }
    }),
    { numRuns: 200 },
  );
});
