import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cacheFolder, projectRoot } from '@antiphon/bootstrap/project';
import { findOnPath } from '@antiphon/bootstrap/engines/probe';
import { hasValidators } from './validate/validator-tools.mjs';

const VALIDATE = join(projectRoot, 'tools/deploy/validate.mjs');
const TWO_MINUTES_AND_MORE = 900_000;

interface Outcome {
  readonly code: number;
  readonly output: string;
}

const validate = (args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<Outcome> =>
  new Promise((resolve) => {
    execFile(process.execPath, [VALIDATE, ...args], { env }, (error, stdout, stderr) => {
      const code = error === null ? 0 : Number(error.code);
      resolve({ code, output: `${stdout}${stderr}` });
    });
  });

/** On a machine without Go or Python the rest cannot be shown, and counts as skipped; in CI it must be. */
const canValidate =
  process.env['CI'] === 'true' ||
  hasValidators(cacheFolder(process.env)) ||
  (findOnPath('go') !== null && findOnPath('python3') !== null);

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

(canValidate ? describe : describe.skip)('npm run validate:deploy', () => {
  let root: string;
  const file = (path: string): string => join(root, path);
  /** Changes one place of a file of the copy; the text must be there. */
  const plant = (path: string, from: string | RegExp, to: string): void => {
    const before = readFileSync(file(path), 'utf8');
    const after = before.replace(from, to);
    expect(after).not.toBe(before);
    writeFileSync(file(path), after);
  };
  const copy = (): void => {
    for (const path of ['k8s', 'deploy', 'docker-compose.yml'])
      cpSync(join(projectRoot, path), file(path), { recursive: true, force: true });
  };
  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'antiphon-deploy-'));
    expect(await validate(['--tools'])).toMatchObject({ code: 0 });
  }, TWO_MINUTES_AND_MORE);
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  it('is green on this project', async () => {
    const { code, output } = await validate([]);
    expect(output).toMatch(
      /ok +k8s\/overlays\/local .*\nok +k8s\/overlays\/production .*\nok +docker-compose\.yml\nok +deploy\/Dockerfile\n$/,
    );
    expect(code).toBe(0);
  }, 120_000);

  type Mistake = readonly [what: string, path: string, from: string | RegExp, to: string, expected: RegExp];

  const mistakes: readonly Mistake[] = [
    [
      'a typo in a manifest',
      'k8s/base/service-pod.yaml',
      'terminationGracePeriodSeconds',
      'terminationGracePeriodSecs',
      /overlays\/local: Deployment agent: Kubernetes 1\.36: .*terminationGracePeriodSecs/,
    ],
    [
      'a typo that only kustomize sees',
      'k8s/overlays/production/kustomization.yaml',
      'spread/agent.yaml',
      'spread/agnet.yaml',
      /k8s\/overlays\/production: [^]*agnet\.yaml/,
    ],
    [
      'a privileged pod',
      'k8s/overlays/local/engines/nats.yaml',
      'allowPrivilegeEscalation: false',
      'privileged: true',
      /overlays\/local: StatefulSet nats: container nats is privileged/,
    ],
    [
      'a compose service without a health check',
      'docker-compose.yml',
      /( {2}nats:[^]*?) {4}healthcheck:[^]*?start_period: 20s\n/,
      '$1',
      /docker-compose\.yml: service nats: has no health check/,
    ],
    [
      'a compose key that Compose does not know',
      'docker-compose.yml',
      'depends_on: *on-engines',
      'depend_on: *on-engines',
      /docker-compose\.yml: .*depend_on/,
    ],
  ];

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
      /overlays\/production: there is no NetworkPolicy that denies everything/,
    ],
    [
      'a port that is published beyond loopback',
      'docker-compose.yml',
      '127.0.0.1:${ANTIPHON_GATEWAY_PORT:-7400}',
      '${ANTIPHON_GATEWAY_PORT:-7400}',
      /service gateway: publishes a port beyond loopback/,
    ],
    [
      'an image that runs as root',
      'deploy/Dockerfile',
      'USER 10001:10001',
      'USER root',
      /deploy\/Dockerfile: the last stage names no user/,
    ],
  ];

  it.each(mistakes)(
    'is red, naming the place, for %s',
    async (_what, path, from, to, expected) => {
      copy();
      plant(path, from, to);
      const { code, output } = await validate(['--root', root]);
      expect(output).toMatch(expected);
      expect(code).toBe(1);
    },
    120_000,
  );

  it('finds all that is wrong at once', async () => {
    copy();
    for (const [, path, from, to] of manyMistakes) plant(path, from, to);
    const { code, output } = await validate(['--root', root]);
    for (const [, , , , expected] of manyMistakes) expect(output).toMatch(expected);
    expect(code).toBe(1);
  }, 120_000);
});
