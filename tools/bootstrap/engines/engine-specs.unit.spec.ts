import { describe, expect, it } from '@jest/globals';
import { ENGINES, isAtLeast } from './engine-specs.mjs';
import { judgeVersion } from './probe.mjs';

describe('versions of engines', () => {
  it.each([
    ['2.12.5', '2.12.5', true],
    ['2.15.1', '2.12.5', true],
    ['2.9.25', '2.12.5', false],
    ['18.4', '17', true],
    ['15.18', '17', false],
    ['1.29.1', '1.29', true],
  ])('%s against a minimum of %s: %s', (version, minimum, enough) => {
    expect(isAtLeast(version, minimum)).toBe(enough);
  });

  it.each([
    ['postgres', 'postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n', '15.18'],
    ['postgres', 'postgres (PostgreSQL) 18.4', '18.4'],
    ['nats', 'nats-server: v2.15.1\n', '2.15.1'],
    ['temporal', 'temporal version 0.0.0-DEV (Server 1.29.1, UI 2.42.1)', '1.29.1'],
    ['temporal', 'something else', null],
  ] as const)('reads what %s says of itself', (engine, output, version) => {
    expect(ENGINES[engine].parseVersion(output)).toBe(version);
  });

  it('refuses a newer PostgreSQL than the one that made the data', () => {
    expect(judgeVersion(ENGINES.postgres, '18.4', '/pg/bin', 17)).toEqual({
      ok: false,
      reason: expect.stringContaining('17 made'),
    });
    expect(judgeVersion(ENGINES.postgres, '18.4', '/pg/bin', 18).ok).toBe(true);
  });
});
