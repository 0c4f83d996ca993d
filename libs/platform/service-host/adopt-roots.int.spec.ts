import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { adoptRoots, loadSigningKeys } from '@antiphon/event-store';
import { RootsWorld } from './testing/roots-world.js';

let world: RootsWorld;
beforeEach(async () => {
  world = await RootsWorld.open();
});
afterEach(() => world.close());

const keys = () => loadSigningKeys(join(world.folder, 'log-signing.key'));
/** Starts a signer, signs once and stops it. Returns the record and the reason of a refusal. */
const restartSigner = async () => {
  const signer = world.createSigner({ keys: keys() });
  const signed = await signer.sign();
  const refusal = signer.refusal();
  await world.stopSigners();
  return { signed, refusal };
};
const adopt = (reason = 'the volume is new', actor = 'spec@host') =>
  adoptRoots({
    ...{ pool: world.pool, keys: keys(), rootsFile: world.rootsFile, actor, reason },
    at: new Date().toISOString(),
  });

describe('a signer without its file of roots', () => {
  // @shows review2-4-forged-evidence
  it('signs no record 1 over older events, also where the table of roots is empty', async () => {
    await restartSigner();
    await world.remember();
    await world.tamper('delete from log_roots');
    rmSync(world.rootsFile);
    const { signed, refusal } = await restartSigner();
    expect(signed).toBeNull();
    expect(refusal).toContain('no signed root covers them');
    expect(refusal).toContain('antiphon roots adopt');
  });

  it('does not continue from the rows of the table, whose newest the owner can remove', async () => {
    await restartSigner();
    await world.remember();
    await restartSigner();
    await world.tamper('delete from log_roots where number > 1');
    await world.tamper('update events set hash = sha256(hash)');
    rmSync(world.rootsFile);
    const { signed, refusal } = await restartSigner();
    expect(signed).toBeNull();
    expect(refusal).toContain('does not prove which record is the newest');
  });

  it('signs again after a copy of the file was put back', async () => {
    await restartSigner();
    await world.remember();
    await restartSigner();
    renameSync(world.rootsFile, `${world.rootsFile}.copy`);
    await world.remember();
    expect((await restartSigner()).signed).toBeNull();
    renameSync(`${world.rootsFile}.copy`, world.rootsFile);
    expect((await restartSigner()).signed).toMatchObject({ number: 3, position: 2 });
  });
});

describe('an adoption', () => {
  it('is a signed record with actor and reason, from which the signer continues', async () => {
    await world.remember();
    expect((await restartSigner()).signed).toBeNull();
    const record = await adopt('upgrade of a home without roots');
    expect(record).toMatchObject({
      ...{ kind: 'adoption', number: 1, position: 1, previous: null },
      ...{ actor: 'spec@host', reason: 'upgrade of a home without roots' },
    });
    await world.remember();
    expect((await restartSigner()).signed).toMatchObject({ kind: 'root', number: 2, position: 2 });
    expect(world.roots().map(({ kind }) => kind)).toEqual(['adoption', 'root']);
  });

  it('continues the chain of the table and completes the file', async () => {
    await restartSigner();
    await world.remember();
    await restartSigner();
    rmSync(world.rootsFile);
    expect(await adopt()).toMatchObject({ number: 3, position: 1 });
    expect(world.roots().map(({ number }) => number)).toEqual([1, 2, 3]);
  });

  it('is refused where the roots begin with the log', async () => {
    await restartSigner();
    await world.remember();
    await restartSigner();
    await expect(adopt()).rejects.toMatchObject({ code: 'LOG.NOTHING_TO_ADOPT' });
  });

  it('is refused for a log that contradicts a known root', async () => {
    await restartSigner();
    await world.remember();
    await restartSigner();
    rmSync(world.rootsFile);
    await world.tamper('update events set hash = sha256(hash)');
    await expect(adopt()).rejects.toMatchObject({ code: 'LOG.ROOTS_DIFFER' });
    await world.tamper('delete from events');
    await expect(adopt()).rejects.toMatchObject({ code: 'LOG.ROOTS_DIFFER' });
  });

  it('is refused without a reason', async () => {
    await world.remember();
    await expect(adopt(' ')).rejects.toMatchObject({ code: 'LOG.BAD_ADOPTION' });
    await expect(adopt('x'.repeat(1_001))).rejects.toMatchObject({ code: 'LOG.BAD_ADOPTION' });
  });
});
