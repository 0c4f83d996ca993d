import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import pg from 'pg';
import type { AccessWorld } from './access-world.js';

/** Attempts to fill the database by writes that are refused. */
export const describeRefusedWrites = (world: () => AccessWorld): void => {
  const bytesOf = async (workspace: string): Promise<number> => {
    const client = new pg.Client({ connectionString: world().stack.databaseUrl });
    await client.connect();
    try {
      const text = 'select coalesce(sum(size), 0) as bytes from file_blobs where workspace = $1';
      return Number((await client.query<{ bytes: string }>(text, [workspace])).rows[0]?.bytes);
    } finally {
      await client.end();
    }
  };

  describe('refused writes of files', () => {
    it('keep no bytes, for any reason of their refusal', async () => {
      const { token } = world().holder('acme member');
      const files = '/api/v1/workspaces/acme/files';
      const path = `${files}/kept-${randomUUID()}.md`;
      expect((await world().request('put', path, token, { text: 'kept' })).status).toBe(200);
      const before = await bytesOf('acme');
      const refused: (readonly [string, object])[] = [
        [path, { expect: null }],
        [path, { expect: '0'.repeat(64) }],
        [`${path}/below.md`, {}],
        [`${files}/talk.chat`, {}],
        [`${files}/..%2fout.md`, {}],
        [path.toUpperCase().replace(files.toUpperCase(), files), {}],
      ];
      for (const [target, more] of refused)
        for (let n = 0; n < 3; n++) {
          const base64 = randomBytes(600_000).toString('base64');
          const { status } = await world().request('put', target, token, { base64, ...more });
          expect([target, status >= 400 && status < 500]).toEqual([target, true]);
        }
      expect(await bytesOf('acme')).toBe(before);
    });
  });
};
