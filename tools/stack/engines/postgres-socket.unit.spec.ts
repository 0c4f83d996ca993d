import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { keepSocketFolder, LOOPBACK_RULE, prepareSocketFolder, SOCKET_RULE } from './postgres-socket.js';

let base: string;
let dataDir: string;
const rulesOf = (folder: string): string => readFileSync(join(folder, 'pg_hba.conf'), 'utf8');
const createData = (folder: string): string => {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'pg_hba.conf'), LOOPBACK_RULE);
  return folder;
};

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'antiphon, socket '));
  dataDir = createData(join(base, 'data'));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

describe('the folder of the Unix socket', () => {
  it('is empty at each start, and the data gets its rule once', async () => {
    const options = { dataDir, port: 15_432, user: null };
    const folder = await prepareSocketFolder(options);
    expect(folder).toBe(join(base, 'socket'));
    expect(rulesOf(dataDir)).toBe(`${SOCKET_RULE}${LOOPBACK_RULE}`);
    writeFileSync(join(folder!, '.s.PGSQL.15432.lock'), `${process.pid}\n`);
    expect(await prepareSocketFolder(options)).toBe(folder);
    expect(existsSync(join(folder!, '.s.PGSQL.15432.lock'))).toBe(false);
    expect(rulesOf(dataDir)).toBe(`${SOCKET_RULE}${LOOPBACK_RULE}`);
  });

  // @shows U55
  it('is null where the path of the socket would be too long', async () => {
    const long = createData(join(base, 'x'.repeat(100), 'data'));
    expect(await prepareSocketFolder({ dataDir: long, port: 15_432, user: null })).toBeNull();
    expect(rulesOf(long)).toBe(LOOPBACK_RULE);
  });

  it('is null where the data cannot take the rule', async () => {
    rmSync(join(dataDir, 'pg_hba.conf'));
    expect(await prepareSocketFolder({ dataDir, port: 15_432, user: null })).toBeNull();
  });

  it('stays the one of the first start, as services know its address', () => {
    expect(keepSocketFolder(undefined, '/home/socket')).toBe('/home/socket');
    expect(keepSocketFolder(undefined, null)).toBeNull();
    expect(keepSocketFolder('/home/socket', '/home/socket')).toBe('/home/socket');
    expect(keepSocketFolder(null, '/home/socket')).toBeNull();
    expect(() => keepSocketFolder('/home/socket', null)).toThrow('cannot listen in /home/socket any more');
  });
});
