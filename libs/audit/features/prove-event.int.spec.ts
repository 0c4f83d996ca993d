import { describe, expect, it } from '@jest/globals';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { REST_RULES } from '@antiphon/contracts/events';
import { archiveEvents, renderProof, verifyProof } from '@antiphon/event-store';
import type { EventProof, SignedTreeRoot } from '@antiphon/event-store';
import {
  admin,
  agent,
  inAuditWorld,
  playTurn,
  publicKey,
  reader,
  rewrite,
  signLog,
} from './audit-world.spec.js';
import { proveEvent } from './prove-event.js';

inAuditWorld();

const readEvents = () => agent.readLog({ after: 0, limit: 100 });
const prove = (eventId: string, roots: readonly SignedTreeRoot[], archives = '.'): Promise<EventProof> =>
  proveEvent({ pool: reader, eventId, publicKeys: [publicKey], roots, archives });

describe('a proof', () => {
  it('exists for every signed event, and any changed byte of its file fails', async () => {
    const roots: SignedTreeRoot[] = [];
    for (let i = 0; i < 3; i++) {
      await playTurn();
      roots.push(await signLog(roots.at(-1)));
    }
    for (const { eventId, position } of await readEvents()) {
      const proof = await prove(eventId, roots);
      expect(proof.root.position).toBe(Math.ceil(position / 7) * 7);
      const text = renderProof(proof);
      expect(verifyProof(text, [publicKey]).event.eventId).toBe(eventId);
      const bytes = Buffer.from(text);
      for (let at = position % 5; at < bytes.length; at += 5) {
        const changed = Buffer.from(bytes);
        changed[at] = (changed[at] ?? 0) ^ (1 << (at % 7));
        expect(() => verifyProof(changed.toString(), [publicKey])).toThrow(/the proof does not hold/);
      }
    }
  });

  it('is refused with another key', async () => {
    await playTurn();
    const [first] = await readEvents();
    const text = renderProof(await prove(first!.eventId, [await signLog()]));
    const other = generateKeyPairSync('ed25519').publicKey;
    expect(() => verifyProof(text, [other])).toThrow(/was not signed with this key/);
    expect(() => verifyProof('', [publicKey])).toThrow(/not JSON/);
    expect(() => verifyProof(`${text} `, [publicKey])).toThrow(/canonical form/);
  });

  it('of a longer log still holds for the root that was signed before', async () => {
    await playTurn();
    const root = await signLog();
    const [first] = await readEvents();
    const before = await prove(first!.eventId, [root]);
    await playTurn();
    expect(await prove(first!.eventId, [root, await signLog(root)])).toEqual(before);
  });

  it('is derived from archived events too', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'antiphon-archive-'));
    const { stream } = await playTurn();
    await playTurn();
    const root = await signLog();
    const [first] = await agent.readStream('default', stream);
    await archiveEvents({ pool: admin, folder, rules: REST_RULES, before: { position: 7 } });
    const proof = await prove(first!.eventId, [root], folder);
    expect(verifyProof(renderProof(proof), [publicKey]).event.position).toBe(first!.position);
    await rm(folder, { recursive: true });
  });

  it('does not exist for a changed, an unknown or an unsigned event', async () => {
    const { stream } = await playTurn();
    const root = await signLog();
    const [, second] = await agent.readStream('default', stream);
    await rewrite(stream, 2, `data = jsonb_set(data, '{content}', '"never asked"')`);
    await expect(prove(second!.eventId, [root])).rejects.toMatchObject({ code: 'PROOF.INVALID' });
    await expect(prove(randomUUID(), [root])).rejects.toMatchObject({ code: 'PROOF.NO_EVENT' });
    await playTurn();
    const last = (await readEvents()).at(-1);
    await expect(prove(last!.eventId, [root])).rejects.toMatchObject({ code: 'PROOF.NO_ROOT' });
  });
});
