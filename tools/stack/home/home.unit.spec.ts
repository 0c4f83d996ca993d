import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { homeLayout } from '@antiphon/bootstrap/project';
import { ensureCredentials, prepareHome } from './home.js';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'antiphon-home-'));
});
afterEach(() => rmSync(home, { recursive: true }));

describe('the credentials of a home', () => {
  it('are made once', () => {
    const paths = prepareHome(home);
    expect(ensureCredentials(paths)).toEqual(ensureCredentials(paths));
  });

  it('of an older version keep their values and gain the password of the archiver', () => {
    const paths = prepareHome(home);
    const { archiver: _, ...old } = ensureCredentials(paths);
    writeFileSync(homeLayout(home).secretsFile, JSON.stringify(old));
    const upgraded = ensureCredentials(paths);
    expect(upgraded).toEqual({ ...old, archiver: expect.any(String) });
    expect(JSON.parse(readFileSync(paths.secretsFile, 'utf8'))).toEqual(upgraded);
  });
});

describe('the folders of a home', () => {
  it('are accessible to their owner only', () => {
    const { run, credentials, logs, nats, temporal } = prepareHome(home);
    for (const folder of [run, credentials, logs, nats, temporal])
      expect([folder, statSync(folder).mode & 0o777]).toEqual([folder, 0o700]);
  });
});
