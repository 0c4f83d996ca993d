import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from '@jest/globals';
import { containerNatsConfig } from '@antiphon/stack';

const ROOT = resolve(import.meta.dirname, '../..');

// After a change of permissions: npm run build && node tools/deploy/nats-config.mjs
it.each(['deploy/nats.conf', 'k8s/overlays/local/engines/nats.conf'])(
  '%s has the permissions of libs/platform/messaging/permissions.ts',
  (file) => expect(readFileSync(join(ROOT, file), 'utf8')).toBe(containerNatsConfig()),
);
