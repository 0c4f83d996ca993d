import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { AUDIT_ROUTES, LOG_ROUTES } from '@antiphon/contracts/reference';
import type { GatewayRequests } from '../gateway.ports.js';
import { adminOf, createIdentityWorld, type IdentityWorld } from '../testing/identity-world.js';
import { AuditsController } from './audits.controller.js';
import { LogStatusController } from './log-status.controller.js';

const AUDIT = AUDIT_ROUTES.recordAudit.body.parse(AUDIT_ROUTES.recordAudit.example.body);
const BACKUP = LOG_ROUTES.recordBackup.body.parse(LOG_ROUTES.recordBackup.example.body);
const ADMIN = adminOf('default');

let world: IdentityWorld;
let audits: AuditsController;
let status: LogStatusController;

const listAudits = (at?: number) => audits.list({ query: { limit: 10, at } } as never, ADMIN);
const listBackups = (at?: number, principal = ADMIN) =>
  status.listBackups({ query: { limit: 10, at } } as never, principal);

beforeAll(async () => {
  world = await createIdentityWorld();
  const requests = { request: () => Promise.resolve({ restores: [] }) } as unknown as GatewayRequests;
  audits = new AuditsController(world.log, world.pool);
  status = new LogStatusController(requests, world.log, world.pool);
  await audits.record({ body: AUDIT } as never, ADMIN);
  await status.recordBackup({ body: BACKUP } as never, ADMIN);
});
afterAll(() => world.close());

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
