import { describe, expect, it } from '@jest/globals';
import { findById } from './find-id.js';

const found = () => Promise.resolve({});
const fail = (status: number) => () => Promise.reject(Object.assign(new Error('no'), { status }));
const missing = fail(404);

describe('the things with an id', () => {
  it('are a run and no session where only a run has it', async () => {
    const http = { getSession: missing, getRun: found, findTurn: missing };
    expect(await findById(http, 'x')).toEqual(['run']);
  });

  it('are a session where the caller may not read runs', async () => {
    const http = { getSession: found, getRun: fail(403), findTurn: missing };
    expect(await findById(http, 'x')).toEqual(['session']);
  });

  it('are none where nothing has it', async () => {
    expect(await findById({ getSession: missing, getRun: missing, findTurn: missing }, 'x')).toEqual([]);
  });

  it('are unknown while the API fails', async () => {
    const http = { getSession: fail(503), getRun: found, findTurn: missing };
    await expect(findById(http, 'x')).rejects.toThrow('no');
  });
});
