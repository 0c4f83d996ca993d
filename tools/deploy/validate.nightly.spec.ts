import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
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

/** Mistakes that hide later ones, or are hidden. validate.int.spec.ts plants all others at once. */
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

(canValidate ? describe : describe.skip)('npm run validate:deploy, mistake by mistake', () => {
  let root: string;
  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'antiphon-deploy-'));
    expect(await validate(['--tools'])).toMatchObject({ code: 0 });
  }, UNTIL_BUILT_MS);
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  it('is green on this project', async () => {
    const { code, output } = await validate([]);
    expect(output).toMatch(
      /ok +k8s\/overlays\/local .*\nok +k8s\/overlays\/production .*\nok +docker-compose\.yml\nok +deploy\/Dockerfile\n$/,
    );
    expect(code).toBe(0);
  }, 120_000);

  it.each(mistakes)(
    'is red, naming the place, for %s',
    async (...mistake) => {
      copyDeployment(root);
      plant(root, mistake);
      const { code, output } = await validate(['--root', root]);
      expect(output).toMatch(mistake[4]);
      expect(code).toBe(1);
    },
    120_000,
  );
});
