import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '@antiphon/bootstrap/project';
import { SERVICES } from '@antiphon/contracts/messaging';
import { connectNats } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import { startNatsServer } from '@antiphon/testing';
import type { TestNatsServer } from '@antiphon/testing';
import { containerNatsConfig, natsPasswordVariable } from './nats-config.js';

/** Without quotes inside, nats-server would read it as the number 1e5 and fail. */
const passwordOf = (user: string): string => `1e5-${user}_x`;
const users = ['operator', ...SERVICES];

/** The part of the file that says who may do what. */
const authorization = (): string => {
  const text = containerNatsConfig();
  return text.slice(text.indexOf('"authorization"'), text.lastIndexOf('}'));
};

describe('the NATS configuration of the containers', () => {
  it.each(['deploy/nats.conf', 'k8s/overlays/local/engines/nats.conf'])(
    'is committed as the code makes it: %s',
    (file) => expect(readFileSync(join(projectRoot, file), 'utf8')).toBe(containerNatsConfig()),
  );

  describe('on a real server', () => {
    let server: TestNatsServer;
    beforeAll(async () => {
      const env = Object.fromEntries(
        users.map((user) => [natsPasswordVariable(user), `"${passwordOf(user)}"`]),
      );
      server = await startNatsServer({ config: authorization(), env });
    });
    afterAll(() => server.remove());

    it('admits each service with its password to its own subjects', async () => {
      for (const service of SERVICES) {
        const options = { url: server.url, service, user: service, logger: silentLogger };
        const link = await connectNats({ ...options, password: passwordOf(service) });
        const refused: string[] = [];
        const listening = (async () => {
          for await (const status of link.connection.status())
            if (status.type === 'error') refused.push(status.error.message);
        })();
        link.connection.publish('_INBOX.somebody.else');
        await link.connection.flush();
        await link.connection.close();
        await listening;
        expect(refused.join()).toMatch(/Permissions Violation/i);
      }
    });

    it('refuses a wrong password and a client without one', async () => {
      const options = { url: server.url, service: 'agent' as const, logger: silentLogger };
      await expect(
        connectNats({ ...options, user: 'agent', password: passwordOf('memory') }),
      ).rejects.toThrow();
      await expect(connectNats({ ...options, user: undefined, password: undefined })).rejects.toThrow();
    });
  });
});
