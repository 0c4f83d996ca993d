import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { generateKeyPairSync } from 'node:crypto';
import type { JsonObject } from '@antiphon/kernel';
import { AUDIT_ROUTES, LOG_ROUTES } from '@antiphon/contracts/reference';
import { isSignedReport, parseSigningKeys, signReport } from '@antiphon/event-store';
import type { SignedReportProof } from '@antiphon/event-store';
import type { GatewayRequests } from '../gateway.ports.js';
import { adminOf, createIdentityWorld, type IdentityWorld } from '../testing/identity-world.js';
import { AuditsController } from './audits.controller.js';
import { LogStatusController } from './log-status.controller.js';

const createKeys = () => {
  const { privateKey } = generateKeyPairSync('ed25519');
  return parseSigningKeys(String(privateKey.export({ type: 'pkcs8', format: 'pem' })), 'spec');
};
const KEYS = createKeys();
const now = (): string => new Date().toISOString();
const sign = <T extends object>(kind: string, report: T, at = now(), keys = KEYS): T => ({
  ...report,
  proof: signReport(kind, report as unknown as JsonObject, at, keys),
});
const { proof: _a, ...AUDIT_REPORT } = AUDIT_ROUTES.recordAudit.body.parse(
  AUDIT_ROUTES.recordAudit.example.body,
);
const { proof: _b, ...BACKUP_REPORT } = LOG_ROUTES.recordBackup.body.parse(
  LOG_ROUTES.recordBackup.example.body,
);
const AUDIT = sign('audit', AUDIT_REPORT);
const BACKUP = sign('backup', BACKUP_REPORT);
const ADMIN = adminOf('default');

let world: IdentityWorld;
let audits: AuditsController;
let status: LogStatusController;

const listAudits = (at?: number) => audits.list({ query: { limit: 10, at } } as never, ADMIN);
const listBackups = (at?: number, principal = ADMIN) =>
  status.listBackups({ query: { limit: 10, at } } as never, principal);

beforeAll(async () => {
  world = await createIdentityWorld();
  // Replies as the memory service does, with the key of this spec.
  const request = (_: unknown, body: SignedReportProof & { kind?: string; report: JsonObject }) =>
    Promise.resolve(
      body.kind === undefined
        ? { restores: [] }
        : { isValid: isSignedReport(body.kind, body.report, body, KEYS.publicKeys), hasKeys: true },
    );
  const requests = { request } as unknown as GatewayRequests;
  audits = new AuditsController(world.log, world.pool, requests, world.clock);
  status = new LogStatusController(requests, world.log, world.pool, world.clock);
  await audits.record({ body: AUDIT } as never, ADMIN);
  await status.recordBackup({ body: BACKUP } as never, ADMIN);
});
afterAll(() => world.close());

describe('a report by assertion', () => {
  const FORGED = { ...AUDIT_REPORT, auditId: '0192f0c1-7a2b-7c3d-8e4f-0000000000aa', ok: true };
  const record = (body: object) => audits.record({ body } as never, ADMIN);

  it('is refused without a signature, with a remedy', async () => {
    await expect(record(FORGED)).rejects.toMatchObject({
      code: 'AUDIT.UNSIGNED',
      message: expect.stringContaining('antiphon audit --record'),
    });
    await expect(status.recordBackup({ body: BACKUP_REPORT } as never, ADMIN)).rejects.toMatchObject({
      code: 'BACKUP.REPORT_UNSIGNED',
    });
  });

  it('is refused with the signature of another key, report or kind', async () => {
    const unsigned = { code: 'AUDIT.UNSIGNED' };
    await expect(record(sign('audit', FORGED, now(), createKeys()))).rejects.toMatchObject(unsigned);
    await expect(record({ ...AUDIT, auditId: FORGED.auditId })).rejects.toMatchObject(unsigned);
    await expect(record({ ...AUDIT, ok: !AUDIT.ok })).rejects.toMatchObject(unsigned);
    await expect(record(sign('backup', FORGED))).rejects.toMatchObject(unsigned);
  });

  it('is refused over an hour after its signature, and before it', async () => {
    const at = (ms: number) => new Date(Date.now() + ms).toISOString();
    for (const ms of [-61 * 60_000, 6 * 60_000])
      await expect(record(sign('audit', FORGED, at(ms)))).rejects.toMatchObject({ code: 'AUDIT.OUTDATED' });
    expect((await listAudits()).audits).toHaveLength(1);
  });
});

describe('recorded audits and backups', () => {
  it('are listed with their positions, for now without a position of the answer', async () => {
    const { audits: listed, ...ofAudits } = await listAudits();
    const { backups, ...ofBackups } = await listBackups();
    expect(listed).toMatchObject([{ auditId: AUDIT.auditId, recordedBy: 'token', position: 1 }]);
    expect(backups).toMatchObject([{ backupId: BACKUP.backupId, recordPosition: 2 }]);
    expect([ofAudits, ofBackups]).toEqual([{}, { restores: [], head: 2 }]);
  });

  it('are listed as of a position, with this position and the head of the log', async () => {
    expect(await listAudits(1)).toMatchObject({ audits: [{ position: 1 }], head: 2 });
    expect([(await listAudits(1)).position, (await listBackups(1)).position]).toEqual([1, 1]);
    expect(await listBackups(1)).toEqual({ backups: [], restores: [], position: 1, head: 2 });
    await expect(listBackups(3)).rejects.toMatchObject({ code: 'LOG.POSITION_AHEAD' });
  });

  it('are refused to the key of an agent, and are empty in another workspace', async () => {
    const agent = adminOf('default', { agentId: 'writer' });
    await expect(listBackups(undefined, agent)).rejects.toMatchObject({ code: 'AGENT.NOT_ALLOWED' });
    expect(await listBackups(undefined, adminOf('acme'))).toEqual({ backups: [], restores: [], head: 2 });
    await expect(status.recordBackup({ body: BACKUP } as never, adminOf('acme'))).rejects.toMatchObject({
      code: 'BACKUP.OTHER_WORKSPACE',
    });
  });
});
