import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  UNTIL_BUILT_MS,
  canValidate,
  copyDeployment,
  plant,
  validate,
} from './testing/validate-under-test.js';
import type { Mistake } from './testing/validate-under-test.js';

describe('npm run validate:deploy without its tools', () => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-bare-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('says what to install and fails with code 2', async () => {
    const bare = { PATH: folder, ANTIPHON_CACHE: join(folder, 'cache') };
    const { code, output } = await validate([], bare);
    expect(output).toMatch(/cannot validate anything: Go is not installed.*Python is not installed/);
    expect(output).toMatch(/What to do: install Go/);
    expect(code).toBe(2);
  });

  it('fails with code 2 when the modules cannot be had', async () => {
    writeFileSync(join(folder, 'go'), '#!/bin/sh\necho "dial tcp: no route to host" >&2\nexit 1\n');
    chmodSync(join(folder, 'go'), 0o755);
    symlinkSync(process.execPath, join(folder, 'python3'));
    const { code, output } = await validate([], {
      PATH: `${folder}:/bin`,
      ANTIPHON_CACHE: join(folder, 'cache'),
    });
    expect(output).toMatch(/no route to host[^]*What to do: .*module proxy/);
    expect(code).toBe(2);
  });
});

/** None of these hides another one. */
const manyMistakes: readonly Mistake[] = [
  [
    'a pod that may run as root',
    'k8s/base/service-pod.yaml',
    'runAsNonRoot: true',
    'runAsNonRoot: false',
    /Deployment memory: container service runAsNonRoot is not true/,
  ],
  [
    'a service without limits',
    'k8s/base/sandbox.yaml',
    /limits: .*/,
    '',
    /Deployment sandbox: container service has no memory in resources\.limits/,
  ],
  [
    'a readiness probe that lies',
    'k8s/base/service-pod.yaml',
    'path: /readyz',
    'path: /healthz',
    /Deployment gateway: container service readinessProbe does not ask \/readyz/,
  ],
  [
    'a secret in a manifest',
    'k8s/base/agent.yaml',
    'valueFrom: { secretKeyRef: { name: antiphon-agent, key: nats-password } }',
    'value: hunter2',
    /Deployment agent: container service ANTIPHON_SERVICE_NATS_PASSWORD stands in the manifest/,
  ],
  [
    'a key that no Secret has',
    'k8s/base/gateway.yaml',
    'key: token',
    'key: tokn',
    /Deployment gateway: Secret antiphon-gateway has no key tokn/,
  ],
  [
    'a first admin key under a name that no Secret has',
    'k8s/base/gateway.yaml',
    'key: bootstrap-key',
    'key: bootstrap-kye',
    /Deployment gateway: Secret antiphon-gateway may not be optional/,
  ],
  [
    'a master key under a name that no Secret has',
    'k8s/base/agent.yaml',
    'key: master-key',
    'key: mastr-key',
    /Deployment agent: Secret antiphon-agent may not be optional/,
  ],
  [
    'a file of signed roots that ends with its pod',
    'k8s/base/log-signer.yaml',
    'persistentVolumeClaim: { claimName: log-roots }',
    'emptyDir: { sizeLimit: 1Mi }',
    /Deployment log-signer: container service ANTIPHON_LOG_ROOTS_FILE is in no persistent volume/,
  ],
  [
    'a network policy that does nothing, by a typo',
    'k8s/overlays/local/network-policies.yaml',
    'app.kubernetes.io/component: service',
    'app.kubernetes.io/component: srvice',
    /Deployment metering: no network policy lets it out to port 5432[^]*services-to-engines: .*srvice.* picks no pod/,
  ],
  [
    'no default-deny',
    'k8s/base/network-policies.yaml',
    'policyTypes: [Ingress, Egress]',
    'policyTypes: [Ingress]',
    /overlays\/production: there is no NetworkPolicy that denies all traffic/,
  ],
  [
    'a port that is published beyond loopback',
    'docker-compose.yml',
    '127.0.0.1:${ANTIPHON_GATEWAY_PORT:-7400}',
    '${ANTIPHON_GATEWAY_PORT:-7400}',
    /service gateway: publishes a port beyond loopback/,
  ],
  [
    'a sandbox that reaches Temporal',
    'docker-compose.yml',
    '[postgres-sandbox, nats-sandbox, outside-sandbox]',
    '[postgres-sandbox, nats-sandbox, outside-sandbox, temporal-agent]',
    /service sandbox: reaches agent, nats, postgres, temporal, and needs nats, postgres/,
  ],
  [
    'an image of others without a version',
    'docker-compose.yml',
    'image: nats:2.15.2-alpine',
    'image: nats:alpine',
    /service nats: image nats:alpine can be another one tomorrow/,
  ],
  [
    'an image that runs as root',
    'deploy/Dockerfile',
    'USER 10001:10001',
    'USER root',
    /deploy\/Dockerfile: the last stage names no user/,
  ],
];

(canValidate ? describe : describe.skip)('npm run validate:deploy', () => {
  let root: string;
  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'antiphon-deploy-'));
    expect(await validate(['--tools'])).toMatchObject({ code: 0 });
  }, UNTIL_BUILT_MS);
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  it('finds all that is wrong at once', async () => {
    copyDeployment(root);
    for (const mistake of manyMistakes) plant(root, mistake);
    const { code, output } = await validate(['--root', root]);
    for (const [, , , , expected] of manyMistakes) expect(output).toMatch(expected);
    expect(code).toBe(1);
  }, 120_000);
});
