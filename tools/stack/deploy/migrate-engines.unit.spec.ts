import { describe, expect, it } from '@jest/globals';
import { SERVICES } from '@antiphon/contracts/messaging';
import { readMigrateSettings } from './migrate-engines.js';

const URL = 'postgresql://owner:of-everything@db:5432/antiphon';
const passwords = Object.fromEntries(
  SERVICES.map((service) => [
    `ANTIPHON_${service.toUpperCase()}_DATABASE_PASSWORD`,
    `${service}-0123456789abcdef`,
  ]),
);

describe('the settings of the migration job', () => {
  it('contain the owner’s address, a password for each service, and Temporal', () => {
    const env = { ANTIPHON_DATABASE_URL: URL, ANTIPHON_TEMPORAL_ADDRESS: 'temporal:7233', ...passwords };
    expect(readMigrateSettings(env)).toEqual({
      databaseUrl: URL,
      temporal: { address: 'temporal:7233', tls: false },
      passwords: Object.fromEntries(SERVICES.map((service) => [service, `${service}-0123456789abcdef`])),
    });
  });

  it('accept a database without passwords and without Temporal', () =>
    expect(readMigrateSettings({ ANTIPHON_DATABASE_URL: URL, ANTIPHON_TEMPORAL_ADDRESS: '' })).toMatchObject({
      passwords: null,
      temporal: null,
    }));

  it('name the wrong variable without its value', () => {
    const half = { ...passwords, ANTIPHON_MEMORY_DATABASE_PASSWORD: 'short' };
    const read = () => readMigrateSettings({ ANTIPHON_DATABASE_URL: URL, ...half });
    expect(read).toThrow(/ANTIPHON_MEMORY_DATABASE_PASSWORD$/);
    expect(read).not.toThrow(/short|0123456789/);
    expect(() => readMigrateSettings({ ANTIPHON_DATABASE_URL: 'mysql://owner:hidden@db/x' })).toThrow(
      /^(?!.*hidden).*ANTIPHON_DATABASE_URL/,
    );
  });
});
