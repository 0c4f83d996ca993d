import { describe, expect, it } from '@jest/globals';
import { rejected } from '@antiphon/kernel';
import { isConnectionLost, isTransientDatabaseError, translateDatabaseError } from '@antiphon/database';

const pgError = (code: string, more: object = {}): Error =>
  Object.assign(new Error('secret SQL'), { code, ...more });

describe('translateDatabaseError', () => {
  it.each([
    'ECONNREFUSED',
    '08006',
    '57P01',
    '57P03',
    '53300',
    '53100',
    '55P03',
    '57014',
    '40001',
    '40P01',
    '58030',
  ])('translates %s to LOG.UNAVAILABLE', (code) =>
    expect(translateDatabaseError(pgError(code))).toMatchObject({
      kind: 'transient',
      code: 'LOG.UNAVAILABLE',
    }),
  );

  it.each([
    'Connection terminated unexpectedly',
    'timeout exceeded when trying to connect',
    'Connection terminated due to connection timeout',
  ])('treats "%s" as a lost connection', (message) =>
    expect(isConnectionLost(new Error(message))).toBe(true),
  );

  it('distinguishes a lost connection from a rejected statement', () => {
    expect(isConnectionLost(pgError('57014'))).toBe(false);
    expect(isConnectionLost(pgError('40P01'))).toBe(false);
    expect(isTransientDatabaseError(pgError('23505'))).toBe(false);
  });

  it('reports a missing grant as a bug, and never the SQL or the SQLSTATE', () => {
    expect(translateDatabaseError(pgError('42501'))).toMatchObject({
      kind: 'bug',
      code: 'DATABASE.FORBIDDEN',
    });
    expect(translateDatabaseError(pgError('23505', { constraint: 'x_pkey' }))).toMatchObject({
      kind: 'conflict',
      code: 'DATABASE.UNIQUE',
      data: { constraint: 'x_pkey' },
    });
    const unknown = translateDatabaseError(pgError('42P01'));
    expect(unknown).toMatchObject({ kind: 'bug', code: 'DATABASE.ERROR', cause: { code: '42P01' } });
    expect(JSON.stringify([unknown.message, unknown.data])).not.toContain('42P01');
    expect(unknown.message).not.toContain('secret');
  });

  it.each([
    ['55000', 'InitPostgres'],
    ['42501', 'CheckMyDatabase'],
    ['3D000', 'InitPostgres'],
    ['28P01', 'auth_failed'],
  ])('translates a connection that is refused with %s to LOG.UNAVAILABLE', (code, routine) =>
    expect(translateDatabaseError(pgError(code, { routine }))).toMatchObject({
      kind: 'transient',
      code: 'LOG.UNAVAILABLE',
    }),
  );

  it('translates an error of other code to a bug', () => {
    const error = new TypeError('x is undefined');
    expect(translateDatabaseError(error)).toMatchObject({ code: 'INTERNAL.UNEXPECTED', cause: error });
  });

  it('returns an AppError unchanged', () => {
    const error = rejected('A.B', 'no');
    expect(translateDatabaseError(error)).toBe(error);
  });
});
